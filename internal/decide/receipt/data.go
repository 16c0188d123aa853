package receipt

import (
	"fmt"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/egress"
)

// Reading is the kind of BillExtras, and the rule of an attempt, that is the cost of reading inputs.
const Reading = ledger.DataRule

// DataUse sums up what bringing inputs to the machines of a job took. Amounts are those of the provider that has the
// data; the ledger contains them. Charges for requests are unknown, so that no amount contains them.
type DataUse struct {
	Currency money.Currency `json:"currency"`
	Files    int64          `json:"files"`
	Bytes    int64          `json:"bytes"`
	Hits     int64          `json:"hits"`          // files that the machines' caches had
	HitBytes int64          `json:"hit_bytes"`     // bytes of these
	Fetched  int64          `json:"fetched_bytes"` // read from where the inputs lie, with those of broken tries
	Requests int64          `json:"requests"`      // to the stores; their price is unknown
	Seconds  float64        `json:"seconds"`       // machine time in which programs waited for inputs, market time
	Cost     *money.Amount  `json:"cost"`          // of the bytes fetched whose price is known; null if none is
	Saved    *money.Amount  `json:"saved"`         // likewise, of the bytes that caches had
	// UnpricedFetched and UnpricedHits are the bytes that neither Cost nor Saved contains.
	UnpricedFetched int64 `json:"unpriced_fetched_bytes"`
	UnpricedHits    int64 `json:"unpriced_hit_bytes"`
	// Unreported counts the machines that ended before their agents reported what they had read. No field contains it.
	Unreported int64      `json:"unreported_machines,omitempty"`
	Reads      []DataRead `json:"reads"`
}

// DataRead is what bringing an input to a machine took.
type DataRead struct {
	Attempt  string        `json:"attempt"`
	Node     int           `json:"node"` // rank of the machine
	Instance string        `json:"instance"`
	Provider string        `json:"provider"`
	Region   string        `json:"region"`
	Name     string        `json:"name"`
	Path     string        `json:"path"`
	Digest   string        `json:"digest,omitempty"` // of the content, see docs/data.md; "": unknown
	Files    int64         `json:"files"`
	Bytes    int64         `json:"bytes"`
	Hits     int64         `json:"hits"`
	HitBytes int64         `json:"hit_bytes"`
	Fetched  int64         `json:"fetched_bytes"`
	Requests int64         `json:"requests"`
	Seconds  float64       `json:"seconds"`
	Cost     *money.Amount `json:"cost"`  // null: the price of reading there is unknown
	Saved    *money.Amount `json:"saved"` // likewise
}

// Price adds what reading costs at the price of 1e9 bytes; nil: unknown.
func (d *DataRead) Price(gigabyte *money.Rate) {
	if gigabyte != nil {
		d.Cost, d.Saved = new(egress.Cost(d.Fetched, *gigabyte)), new(egress.Cost(d.HitBytes, *gigabyte))
	}
}

// SumData sums up the reads of a job; nil if there are none.
func SumData(reads []DataRead) *DataUse {
	if len(reads) == 0 {
		return nil
	}
	u := &DataUse{Currency: money.USD, Reads: reads}
	for i := range reads {
		d := &reads[i]
		u.Files, u.Bytes, u.Hits, u.HitBytes = u.Files+d.Files, u.Bytes+d.Bytes, u.Hits+d.Hits, u.HitBytes+d.HitBytes
		u.Fetched, u.Requests, u.Seconds = u.Fetched+d.Fetched, u.Requests+d.Requests, u.Seconds+d.Seconds
		if d.Cost == nil || d.Saved == nil {
			u.UnpricedFetched, u.UnpricedHits = u.UnpricedFetched+d.Fetched, u.UnpricedHits+d.HitBytes
			continue
		}
		if u.Cost == nil {
			u.Cost, u.Saved = new(money.Amount), new(money.Amount)
		}
		*u.Cost, *u.Saved = u.Cost.Add(*d.Cost), u.Saved.Add(*d.Saved)
	}
	return u
}

// Text describes the sums in a sentence.
func (u *DataUse) Text() string {
	parts := []string{fmt.Sprintf("%s in %s brought in %s", size.About(float64(u.Bytes)),
		draw.Count(int(u.Files), "file"), draw.Span(time.Duration(u.Seconds*float64(time.Second))))}
	parts = append(parts,
		size.About(float64(u.HitBytes))+" from caches"+priced(u.Saved, u.UnpricedHits, u.Currency, " saved"),
		size.About(float64(u.Fetched))+" read"+priced(u.Cost, u.UnpricedFetched, u.Currency, " charged"))
	if u.Unreported > 0 {
		parts = append(parts, "unknown for "+draw.Count(int(u.Unreported), "machine")+" that ended before a report")
	}
	return strings.Join(parts, ", ")
}

// priced writes an amount in brackets, and the bytes that it does not contain.
func priced(a *money.Amount, unpriced int64, c money.Currency, what string) string {
	var parts []string
	if a != nil {
		parts = append(parts, sum(*a, c)+what)
	}
	if unpriced > 0 {
		parts = append(parts, size.About(float64(unpriced))+" of unknown price")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

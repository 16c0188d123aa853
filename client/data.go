package client

import (
	"context"
	"net/http"
	"net/url"

	"scrimp/money"
)

// DataUse sums up the inputs that agents brought to the machines of a job, with their cost and time. Amounts are those
// of the provider that has the data; the ledger contains them. Charges for requests are unknown, so that no amount
// contains them.
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

// DataRead is an input that an agent brought to a machine.
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

// DataUse returns a summary of the inputs that agents brought to the machines of a job.
func (c *Client) DataUse(ctx context.Context, id string) (DataUse, error) {
	return ask[DataUse](ctx, c, http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/data", nil)
}

package suite

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/storetest"
)

// Limits on the disk usage of a record beyond the text of its event and facts, and of a whole posting, including
// indexes and free space within pages.
const (
	mostOfARecord  = 120
	mostOfAPosting = 400
	emptyPages     = 100 << 10 // free space in the pages of a table and its indexes, however few records it has
)

// sizes measures records and as many postings, 100,000 of each in the nightly lane, in a database that has grown
// without a vacuum.
func sizes(t *testing.T, b storetest.Backend) {
	const each = 5
	records, events := lane.Pick(5_000, 100_000), lane.Pick(1_000, 20_000)
	place := b.Place(t)
	s := b.At(t, place)
	empty := b.Size(t, place)
	text, seq := 0, uint64(0)
	write := func(n int, postings func(seq uint64) []ledger.Posting) (grown float64) {
		before, texts := b.Size(t, place), text
		for range n / 1000 {
			list := make([]storetest.Record, 0, 1000)
			for range 1000 {
				seq++
				r := typical(seq)
				r.Postings = postings(seq)
				text += len(r.Event) + len(r.Facts)
				list = append(list, r)
			}
			storetest.Must(t, s.Append(t.Context(), list))
		}
		return float64(b.Size(t, place)-before) - float64(text-texts)
	}
	record := write(records, func(uint64) []ledger.Posting { return nil }) / float64(records)
	posting := (write(events, func(seq uint64) []ledger.Posting {
		return typicalPostings(seq, each)
	}) - record*float64(events)) / float64(events*each)
	t.Logf("%d bytes when empty; a record: %.0f and its text of %d; a posting: %.0f", empty, record,
		text/(records+events), posting)
	if most := mostOfARecord + emptyPages/float64(records); record > most || posting > mostOfAPosting {
		t.Errorf("a record takes %.0f bytes besides its text, a posting %.0f; at most %.0f and %d", record, posting,
			most, mostOfAPosting)
	}
	if record < 20 || posting < 100 {
		t.Errorf("%.0f and %.0f bytes: that cannot be", record, posting)
	}
}

// typical returns an event like most of a server's, with facts; one in ten has a key.
func typical(seq uint64) store.Record {
	job := fmt.Sprintf("j-%06d", seq%5000)
	r := store.Record{
		Seq: seq, Tenant: "default", At: storetest.Opened.Add(time.Duration(seq) * time.Second),
		Kind: []string{"tick", "price_changed", "phase_changed"}[seq%3],
		Event: json.RawMessage(
			fmt.Sprintf(
				`{"at":"2026-01-02T03:04:05.678901234Z","schema":1,"tenant":"default","actor":"agent:i-0abc%06d",`+
					`"body":{"job":%q,"attempt":%q,"step":%d}}`,
				seq, job, job+"-1", seq*100)),
		Facts: json.RawMessage(fmt.Sprintf(`[{"task":%q,"state":"running","why":%q}]`, job+"-1/0",
			strings.Repeat("price fell; ", int(seq%30)))),
	}
	if seq%10 == 0 {
		r.Key = fmt.Sprintf("agent/%s-1/%d", job, seq)
	}
	return r
}

// typicalPostings returns the postings of an hour of a machine.
func typicalPostings(seq uint64, n int) (list []ledger.Posting) {
	job := fmt.Sprintf("j-%06d", seq%5000)
	for line := range n {
		p, _ := ledger.Move(money.Picos(98_320_000_000_000+int64(seq)*1_000_003), ledger.Payable("aws"),
			ledger.Cost(ledger.Compute, ledger.Open))
		p.Event, p.Line, p.At, p.Currency = seq, line, storetest.Opened.Add(time.Duration(seq)*time.Second), money.USD
		p.Category, p.Phase, p.Use = ledger.Compute, ledger.Accrued, ledger.Open
		p.Provider, p.Region, p.SKU = "aws", "us-east-1", "p5.48xlarge"
		p.Begin, p.End, p.Quantity, p.Unit = p.At.Add(-time.Hour), p.At, ledger.Seconds(time.Hour), ledger.SecondUnit
		p.Price, p.ListPrice = ledger.PriceOf(31_464_000_000_000, true), ledger.PriceOf(98_320_000_000_000, true)
		p.Owner = ledger.Owner{
			Tenant: "default", Team: "vision", Project: "apollo", Environment: "production", ModelVersion: "v1.2.3",
			Job: job, Attempt: job + "-1", Task: job + "-1/0", Instance: fmt.Sprintf("i-0abcdef%011d", seq),
			Tags: map[string]string{"cost-center": "4711", "owner": "somebody"},
		}
		p.Hash = sha256.Sum256(p.AppendBinary(nil))
		list = append(list, p)
	}
	return list
}

package focus_test

import (
	"encoding/csv"
	"io"
	"testing"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/focus"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// A million rows must take less than 30 s, including their input and output.
func BenchmarkRows(b *testing.B) {
	rate := money.Rate(973_100_000_001)
	c := charge.Charge{Begin: begin, Timed: true, Currency: "USD", Category: ledger.Compute, Use: ledger.Useful, Phase: ledger.Accrued,
		Price: ledger.PriceOf(rate, true), ListPrice: ledger.PriceOf(3_060_000_000_000, true), Provider: "aws", Region: "us-east-1",
		Zone: "us-east-1a", SKU: "p5.48xlarge", Owner: ledger.Owner{Tenant: "default", Team: "vision", Project: "lm", Job: "train-lm-17",
			Attempt: "train-lm-17.3", Task: "train-lm-17.3/0", Instance: "i-0123456789abcdef", Tags: map[string]string{"ticket": "ML-17"}},
		Source: charge.Source{User: "ann", Kind: "experiment", Capacity: market.Spot, Accelerators: 8}}
	w, out := focus.NewWriter(focus.V14), csv.NewWriter(io.Discard)
	var room []string
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		c.Time = time.Hour + time.Duration(n%1000)*time.Second
		c.End, c.Amount = begin.Add(c.Time), rate.Until(c.Time)
		if room = w.Row(room[:0], c); len(room) != 76 {
			b.Fatal(len(room))
		}
		_ = out.Write(room)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}

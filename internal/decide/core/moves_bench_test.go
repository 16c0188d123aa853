package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// BenchmarkRoundOfManyJobs has 1,000 running jobs, 1,000 offers and ten paid machines. It measures the read between
// two steps, and the step that applies the proposal of the round.
func BenchmarkRoundOfManyJobs(b *testing.B) {
	q, _ := changedQuote{1_000, 1_000, time.Second, 0}.filled(b)
	o := market.Offer{
		Provider: "p", Region: "r0", Zone: "paid", Machine: "m0", Capacity: market.Reserved, CPUs: 4, Memory: size.GiB,
		Speed: 1, Currency: money.USD, Reserved: market.Reservation{
			Count: 10, From: q.now, Until: q.now.Add(1000 * time.Hour), Paid: money.Picos(1e16)},
	}
	o.ID = market.ID(o)
	q.settle(q.step(core.MarketSeen{Offers: []market.Offer{o},
		Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: q.now}}}))
	var read, taken time.Duration
	for b.Loop() {
		begun := processor()
		in := q.m.RoundInputs()
		read += processor() - begun
		p := assign.Plan(in)
		if len(in.Bids) == 0 {
			b.Fatal("nobody bids")
		}
		begun = processor()
		q.step(core.RoundProposed{Base: p.Base, Groups: p.Groups, Again: p.Again})
		taken += processor() - begun
		q.now = q.now.Add(time.Minute)
	}
	read, taken = read/time.Duration(b.N), taken/time.Duration(b.N)
	b.ReportMetric(read.Seconds()*1e3, "ms-read")
	b.ReportMetric(taken.Seconds()*1e3, "ms-taken")
	if read > longestStep || taken > longestStep {
		b.Fatalf("to read it took %v, to take it %v", read, taken)
	}
}

package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
)

// largeMarket returns n offers in many zones at many prices. All of them suit a class.
func largeMarket(n int) *Listings {
	rng := rand.New(rand.NewPCG(1, 5))
	s := &Listings{}
	for i := range n {
		l := &Listing{Offer: market.Offer{
			ID:   market.OfferID(fmt.Sprintf("cloud/zone-%02d/machine-%03d/%d", i%97, i%331, i)),
			Zone: fmt.Sprint("zone-", i%97), Region: fmt.Sprint("region-", i%31),
			Capacity: market.Spot, CPUs: 4 + rng.IntN(60), Speed: 0.5 + rng.Float64(),
		}}
		rate := money.Rate(2e12 + rng.Int64N(4e12))
		if i%4 == 0 {
			l.Offer.Capacity, rate = market.OnDemand, rate*3
		}
		l.Quote = market.Quote{Offer: l.Offer.ID, Rate: rate, Priced: true, Available: rng.IntN(3) > 0}
		s.Add(l)
	}
	return s
}

func largeJob(rule policy.Rule) Job {
	return Job{
		ID: "j", Rule: rule, Need: Need{Requirements: Requirements{CPUs: 2}},
		Progress: policy.Progress{
			Now: now, Began: now, Deadline: now.Add(20 * time.Hour), Left: 10 * time.Hour, Known: true,
			Restart: time.Minute, Detect: time.Minute,
		},
	}
}

// However prices change, a class agrees with one that is built anew.
func TestClass_FollowsItsMarket(t *testing.T) {
	for seed := range uint64(lane.Pick(70, 2_000)) {
		rng := rand.New(rand.NewPCG(seed, 6))
		s := &Listings{}
		for i := range 40 {
			s.Add(drawListing(rng, fmt.Sprint(i*37%100)))
		}
		c := NewClass(s, drawNeed(rng))
		for range 20 {
			for range rng.IntN(30) * rng.IntN(30) { // sometimes more than it can lag behind
				l := s.all[rng.IntN(len(s.all))]
				drawQuote(rng, l)
				if rng.IntN(40) == 0 {
					l.Offer = drawListing(rng, string(l.Offer.ID)).Offer
				}
				s.Changed(l)
			}
			if rng.IntN(4) == 0 {
				s.Add(drawListing(rng, fmt.Sprint(100+len(s.all))))
			}
			c.follow()
			want := NewClass(s, c.need)
			knows := func(c *Class) string { return fmt.Sprint(c.fit, c.known, c.firstOthers()) }
			if got, want := knows(c), knows(want); got != want {
				t.Fatalf("seed %d: it knows\n%s\nwant\n%s", seed, got, want)
			}
			for _, n := range c.counts {
				if w := len(s.all); n.Count < 0 || n.Count > w {
					t.Fatalf("seed %d: %d of %d are %s", seed, n.Count, w, n.Why)
				}
			}
			if tally(c.counts).total() != len(s.all)-len(c.fit) {
				t.Fatalf("seed %d: %v are counted of %d that do not do", seed, c.counts, len(s.all)-len(c.fit))
			}
		}
	}
}

// In a market larger than a decision weighs, Decide still finds what is available: the cheapest spot, and
// non-preemptible capacity behind any number of spot offers.
func TestDecide_FindsAvailableOfferInLargeMarket(t *testing.T) {
	s := largeMarket(3 * mostOptions)
	for _, l := range s.all {
		if l.spot() {
			l.Quote.Available, l.Quote.Rate = false, l.Quote.Rate/8
			s.Changed(l)
		}
	}
	dear := s.all[len(s.all)-1]
	dear.Offer.Capacity, dear.Offer.Speed, dear.Quote.Rate, dear.Quote.Available = market.Spot, 1, 2e12, true
	s.Changed(dear)
	m := NewPlanner()
	job := largeJob(policy.UniformProgress)
	d := m.Decide(job, NewClass(s, job.Need))
	if d.Take != dear.Offer.ID {
		t.Errorf("it takes %q (%s), not the only spot that can be had", d.Take, d.Why)
	}
	if n := tally(d.Counts).total(); n != len(s.all)-1 {
		t.Errorf("it counts %d of %d others", n, len(s.all)-1)
	}
	for _, l := range s.all { // now all spot is available, and cheaper than what the job needs
		if l.spot() {
			l.Quote.Available = true
		}
	}
	job.Need.Critical = true
	d = m.Decide(job, NewClass(s, largeJob("").Need))
	if l := s.Of(d.Take); l == nil || l.spot() {
		t.Errorf("a job that may not be interrupted takes %q (%s)", d.Take, d.Why)
	}
}

// BenchmarkDecide5000 decides with 5,000 suitable offers. One of them changes its price before each decision.
func BenchmarkDecide5000(b *testing.B) {
	budgeted := largeJob(policy.UniformProgress)
	budgeted.Limited, budgeted.Left = true, money.Picos(60e12)
	for _, c := range []struct {
		name string
		job  Job
	}{
		{"default", largeJob(policy.Default)},
		{"no table", largeJob(policy.UniformProgress)},
		{"no table, budget first", budgeted},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := largeMarket(mostOptions)
			m, class := NewPlanner(), NewClass(s, c.job.Need)
			if got, want := m.Decide(c.job, class), decidePlainly(NewPlanner(), c.job, class); got.Take == "" ||
				got.Take != want.Take ||
				got.Why != want.Why ||
				len(class.fit) != mostOptions {
				b.Fatalf(
					"of %d offers it takes %q (%s), want %q (%s)",
					len(class.fit),
					got.Take,
					got.Why,
					want.Take,
					want.Why,
				)
			}
			rng := rand.New(rand.NewPCG(1, 7))
			b.ReportAllocs()
			for b.Loop() {
				l := s.all[rng.IntN(len(s.all))]
				l.Quote.Rate += money.Rate(rng.Int64N(2e9) - 1e9)
				s.Changed(l)
				m.Decide(c.job, class)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/decision")
		})
	}
}

package plan

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/policy"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func draw(rng *rand.Rand) (Job, []Option) {
	job := Job{
		Progress: policy.Progress{Now: now, Began: now.Add(-time.Hour), Deadline: now.Add(time.Duration(rng.IntN(20)) * time.Hour), Left: time.Duration(rng.IntN(10)) * time.Hour, Known: rng.IntN(4) > 0, Done: time.Duration(rng.IntN(3)) * time.Hour, Restart: 6 * time.Minute, Detect: time.Minute},
		Limited:  rng.IntN(2) == 0, DeadlineFirst: rng.IntN(3) == 0, Need: Need{Critical: rng.IntN(5) == 0, CPUs: rng.IntN(4)},
	}
	job.Left = money.Picos(rng.Int64N(2e12))
	if rng.IntN(3) == 0 {
		job.Need.MaxRate = money.Rate(rng.Int64N(4e12))
	}
	var options []Option
	for i := range 1 + rng.IntN(6) {
		o := Option{Offer: market.Offer{ID: market.OfferID(rune('a' + i)), Capacity: market.Spot, CPUs: 1 + rng.IntN(4), Speed: 1}, Cooling: rng.IntN(5) == 0}
		if rng.IntN(2) == 0 {
			o.Offer.Capacity = market.OnDemand
		}
		o.Quote = market.Quote{Offer: o.Offer.ID, Rate: money.Rate(1 + rng.Int64N(4e12)), Priced: rng.IntN(6) > 0, Available: rng.IntN(3) > 0}
		options = append(options, o)
	}
	if rng.IntN(2) == 0 {
		job.Held = options[rng.IntN(len(options))].Offer.ID
	}
	return job, options
}

func TestWhatIsTakenIsAllowedAndWhatIsNotHasItsReason(t *testing.T) {
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		job, options := draw(rng)
		d := Decide(job, options)
		if d.Why == "" {
			t.Fatalf("seed %d: no reason", seed)
		}
		firm := false
		for _, o := range options {
			_, fits := unfit(job.Need, o)
			firm = firm || fits && o.Offer.Capacity != market.Spot && (o.Quote.Available && !o.Cooling || o.Offer.ID == job.Held)
			if o.Offer.ID != d.Take {
				continue
			}
			switch {
			case !fits:
				t.Fatalf("seed %d: %s does not fit", seed, o.Offer.ID)
			case !o.Quote.Priced:
				t.Fatalf("seed %d: bought at an unknown price", seed)
			case o.Offer.ID != job.Held && (!o.Quote.Available || o.Cooling):
				t.Fatalf("seed %d: %s cannot be had", seed, o.Offer.ID)
			case o.Offer.ID != job.Held && job.Limited && !job.DeadlineFirst && o.Quote.Rate.Until(6*time.Minute).Cmp(job.Left) > 0:
				t.Fatalf("seed %d: beyond the budget", seed)
			case job.Need.Critical && o.Offer.Capacity == market.Spot:
				t.Fatalf("seed %d: a critical job on spot", seed)
			}
		}
		rejected := map[market.OfferID]bool{}
		for _, r := range d.Rejected {
			rejected[r.Offer] = r.Why != ""
		}
		for _, o := range options {
			if o.Offer.ID != d.Take && !rejected[o.Offer.ID] {
				t.Fatalf("seed %d: %s was not taken and nobody says why", seed, o.Offer.ID)
			}
		}
		if d.Mode == policy.Certain && firm && !job.Limited {
			for _, o := range options {
				if o.Offer.ID == d.Take && o.Offer.Capacity == market.Spot {
					t.Fatalf("seed %d: spot without slack, though firm capacity can be had", seed)
				}
			}
		}
		rng.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
		if again := Decide(job, options); !reflect.DeepEqual(d, again) {
			t.Fatalf("seed %d: the order of the options matters:\n%+v\n%+v", seed, d, again)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	job, options := draw(rand.New(rand.NewPCG(1, 1)))
	for len(options) < 100 {
		options = append(options, options...)
	}
	if d := Decide(job, options); d.Why == "" {
		b.Fatal("nothing was decided")
	}
	for b.Loop() {
		Decide(job, options)
	}
	b.ReportMetric(float64(len(options)*b.N)/b.Elapsed().Seconds(), "options/s")
}

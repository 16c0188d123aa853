package plan

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// manyOffers draws the offers for sale at a time: the same offers at other prices.
func manyOffers(rng *rand.Rand) []Listing {
	var list []Listing
	for _, zone := range []string{"a", "b", "c", "d"} {
		for _, c := range []market.Capacity{market.Spot, market.OnDemand} {
			rate := money.Rate(1e12 + rng.Int64N(4e12))
			list = append(list, Listing{
				Offer: market.Offer{
					ID:       market.OfferID(zone + "/" + string(c)),
					Zone:     zone,
					Region:   zone,
					Capacity: c,
					CPUs:     1 + rng.IntN(4),
					Speed:    1,
				},
				Quote: market.Quote{Rate: rate, Priced: rng.IntN(9) > 0, Available: rng.IntN(3) > 0},
			})
		}
	}
	return list
}

func pacedJob() Job {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return Job{
		ID: "j", Rule: policy.UniformProgress, Need: Need{Requirements: Requirements{CPUs: 2}},
		Progress: policy.Progress{
			Now:      now,
			Began:    now,
			Deadline: now.Add(20 * time.Hour),
			Left:     10 * time.Hour,
			Known:    true,
			Restart:  time.Minute,
		},
	}
}

// A planner reuses the buffers of its rankings, but later decisions do not change the rejections of earlier ones.
func TestDecide_RejectionsSurviveLaterDecisions(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	planner, job := NewPlanner(), pacedJob()
	type said struct{ list, then []Rejection }
	var all []said
	for range 300 {
		d := planner.Decide(job, classOf(job, manyOffers(rng)))
		all = append(all, said{d.Rejected, slices.Clone(d.Rejected)})
	}
	differ := 0
	for i, s := range all {
		if !slices.Equal(s.list, s.then) {
			t.Fatalf("decision %d rejected %v, and says %v now", i, s.then, s.list)
		}
		if i > 0 && !slices.Equal(s.then, all[i-1].then) {
			differ++
		}
	}
	if differ < 100 {
		t.Fatalf("only %d of the decisions rejected anything else than the one before", differ)
	}
}

// Repeating a decision allocates nothing: one step may decide about a million jobs.
func TestDecide_RepeatedDecisionDoesNotAllocate(t *testing.T) {
	planner, job, options := NewPlanner(), pacedJob(), manyOffers(rand.New(rand.NewPCG(3, 2)))
	for i := range options { // some spot costs less than unavailable capacity, so all lists are used
		if options[i].Offer.Capacity == market.Spot {
			options[i].Quote.Rate /= 8
		}
	}
	class := classOf(job, options)
	if d := planner.Decide(job, class); d.Take == "" || len(d.Rejected) == 0 {
		t.Fatalf("it weighs nothing: %+v", d)
	}
	if n := testing.AllocsPerRun(50, func() { planner.Decide(job, class) }); n > 0 {
		t.Errorf("it leaves %v things behind, want none", n)
	}
}

package rank_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/rank"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// onTerms returns l with other terms.
func onTerms(l catalog.Listing, t catalog.Term, platform string) catalog.Listing {
	l.Term, l.Platform = t, platform
	l.Offer.ID += market.OfferID("/" + string(t) + "@" + platform)
	return l
}

func TestTerms_CommitmentsAndPlatformsAreRefused(t *testing.T) {
	own := sold("gpu", 1, market.OnDemand, "4")
	term := onTerms(sold("gpu", 1, market.Reserved, "0.01"), "reserved-1y-no-upfront", "")
	managed := onTerms(sold("gpu", 1, market.OnDemand, "0.02"), "", "sagemaker")
	other := onTerms(sold("none", 1, market.Reserved, "0.01"), "reserved-3y-all-upfront", "")
	q := rank.Request{Offers: []catalog.Listing{own, term, managed, other}, Work: 3600, Now: now,
		Requirements: catalog.Filter{Accelerator: "gpu", Least: 1, Most: 1},
		Estimate:     takes(map[string]rank.Range{"gpu": rank.Exactly(2), "none": rank.Exactly(2)})}
	a := rank.Rank(q)
	if len(a.Plans) != 1 || a.Plans[0].ID != own.Offer.ID || a.Plans[0].Cost.Value != 8 || len(a.Recommendations) != 0 {
		t.Errorf("plans %+v, recommended %+v", a.Plans, a.Recommendations)
	}
	why := map[market.OfferID]rank.Reason{}
	for _, r := range a.Rejected {
		why[r.ID] = r.Why
	}
	if why[term.Offer.ID] != rank.NeedsCommitment || why[managed.Offer.ID] != rank.ManagedPlatform ||
		why[other.Offer.ID] != rank.OtherMachine {
		t.Errorf("refused as %v", why)
	}
	// nor do they replace a spot run without slack
	spot := sold("gpu", 1, market.Spot, "1")
	q.Offers, q.Deadline, q.Checkpoints = []catalog.Listing{spot, term, managed}, 3*time.Hour, true
	for _, p := range rank.Rank(q).Plans {
		if p.Fallback != "" {
			t.Errorf("falls back to %s", p.Fallback)
		}
	}
}

func TestLife_EndsTheMachineForCertain(t *testing.T) {
	// the mean time a machine is held, by simulation
	const mean, life = 30.0, 24.0
	rng := rand.New(rand.NewPCG(1, 2))
	sum := 0.0
	const runs = 400_000
	for range runs {
		sum += min(rng.ExpFloat64()*mean, life)
	}
	drawn := sum / runs

	l := sold("gpu", 1, market.Spot, "1")
	l.Offer.MaxLifetime = 24 * time.Hour
	free := sold("gpu", 1, market.Spot, "1")
	free.Offer.ID, free.Offer.Machine = free.Offer.ID+"/free", "free"
	hazards := map[market.OfferID]policy.Hazard{}
	seen := policy.Hazard{Lost: 50_000, Served: 50_000 * 30 * time.Hour}
	hazards[l.Offer.ID], hazards[free.Offer.ID] = seen, seen
	q := rank.Request{Offers: []catalog.Listing{l, free}, Hazards: hazards, Work: 3600, Now: now, Checkpoints: true,
		Save: 30 * time.Second, Estimate: takes(map[string]rank.Range{"gpu": rank.Exactly(100)})}
	a := rank.Rank(q)
	if len(a.Plans) != 2 {
		t.Fatalf("%+v", a)
	}
	with := map[market.OfferID]rank.Plan{a.Plans[0].ID: a.Plans[0], a.Plans[1].ID: a.Plans[1]}
	if held := with[l.Offer.ID].Hours.Value / with[l.Offer.ID].Interruptions; math.Abs(held/drawn-1) > 0.01 {
		t.Errorf("held %v h between interruptions, drawn %v", held, drawn)
	}
	if held := with[free.Offer.ID].Hours.Value / with[free.Offer.ID].Interruptions; math.Abs(held/mean-1) > 0.01 {
		t.Errorf("without a limit held %v h, want %v", held, mean)
	}
	if with[l.Offer.ID].Cost.Value <= with[free.Offer.ID].Cost.Value {
		t.Error("a life that ends costs nothing")
	}
}

func TestLife_BoundsWorkWithoutCheckpoints(t *testing.T) {
	for _, c := range []struct {
		hours    float64
		capacity market.Capacity
		saves    bool
		want     rank.Reason
	}{
		{23, market.Spot, false, ""}, {25, market.Spot, false, rank.OutlivesMachine}, {25, market.Spot, true, ""},
		{25, market.OnDemand, false, rank.OutlivesMachine}, {25, market.OnDemand, true, ""},
	} {
		l := sold("gpu", 1, c.capacity, "1")
		l.Offer.MaxLifetime = 24 * time.Hour
		seen := policy.Hazard{Lost: 1000, Served: 1000 * 100 * time.Hour}
		a := rank.Rank(rank.Request{Offers: []catalog.Listing{l}, Work: 3600, Now: now, Checkpoints: c.saves,
			Hazards:  map[market.OfferID]policy.Hazard{l.Offer.ID: seen},
			Estimate: takes(map[string]rank.Range{"gpu": rank.Exactly(c.hours)})})
		if got := a.Counts[rank.OutlivesMachine] == 1; got != (c.want != "") || a.Feasible != (c.want == "") {
			t.Errorf("%+v: %+v", c, a.Counts)
		}
		if c.capacity == market.OnDemand && c.saves && a.Plans[0].Interruptions < 1 {
			t.Errorf("%v interruptions of a machine that ends", a.Plans[0].Interruptions)
		}
	}
}

// Google Cloud sells each spot machine twice: as spot, and as preemptible, which ends after a day. The second is no plan
// of its own unless it costs less.
func TestRank_PreemptibleTwinOfSpotIsNotRanked(t *testing.T) {
	for _, c := range []struct {
		price string
		plans int
	}{{"1.00", 1}, {"1.10", 1}, {"0.90", 2}} {
		spot, twin := sold("gpu", 1, market.Spot, "1.00"), sold("gpu", 1, market.Spot, c.price)
		twin.Term, twin.Offer.MaxLifetime = catalog.Preemptible, 24*time.Hour
		twin.Offer.ID += "/preemptible"
		a := rank.Rank(rank.Request{Offers: []catalog.Listing{twin, spot}, Work: 3600, Now: now, Checkpoints: true,
			Estimate: takes(map[string]rank.Range{"gpu": rank.Exactly(2)})})
		if len(a.Plans) != c.plans || a.Counts[rank.SameAsSpot] != 2-c.plans {
			t.Errorf("at %s: %d plans, %+v", c.price, len(a.Plans), a.Counts)
		}
	}
}

// No run ends before its machine has started, however wide the estimate: both ends of the time contain the start.
func TestRank_TimeContainsTheStart(t *testing.T) {
	start := 5 * time.Minute
	for _, capacity := range []market.Capacity{market.OnDemand, market.Spot} {
		a := rank.Rank(rank.Request{Offers: []catalog.Listing{sold("gpu", 1, capacity, "1")}, Work: 3600, Now: now,
			Checkpoints: true, Start: start, Estimate: takes(map[string]rank.Range{"gpu": {Low: 0.02, Value: 0.04, High: 0.08}})})
		h := a.Plans[0].Hours
		if h.Low <= start.Hours() || capacity == market.OnDemand && !near(h.Low, start.Hours()+0.02, 1e-9) {
			t.Errorf("%s: done in %v h to %v h, where the start takes %v", capacity, h.Low, h.High, start)
		}
		if capacity == market.OnDemand && !near(h.High, start.Hours()+0.08, 1e-9) {
			t.Errorf("on-demand: done in at most %v h, want the start and 0.08 h", h.High)
		}
	}
}

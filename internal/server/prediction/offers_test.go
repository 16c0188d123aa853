package prediction

import (
	"math"
	"testing"
)

// An offer that is not taken shows its price, and what the work takes and costs there: ten hours at that price.
// Without a price, its cost is unknown.
func TestPlan_PricesTheOffersThatItDoesNotTake(t *testing.T) {
	t.Parallel()
	fast, dear, unpriced := onDemand("hpc", "fast", 900_000_000_000), onDemand("hpc", "dear", 2_000_000_000_000),
		onDemand("hpc", "unpriced", 0)
	fast.Offer.Speed, unpriced.Quote.Priced = 2, false
	p := plannedOn(t, "", fast, dear, unpriced)
	if p.Take != "hpc/fast/m/on-demand" || len(p.Rejected) == 0 {
		t.Fatalf("it takes %s: %+v", p.Take, p.Rejected)
	}
	want := map[string]struct{ hours, usd float64 }{"hpc/dear/m/on-demand": {10, 20}, "hpc/unpriced/m/on-demand": {10, -1}}
	for _, r := range p.Rejected {
		w, ok := want[r.Offer]
		if !ok || r.WorkS == nil || math.Abs(*r.WorkS-w.hours*3600) > 1 || r.Why == "" {
			t.Errorf("%+v, by hand %+v", r, w)
			continue
		}
		if w.usd < 0 && (r.WorkUSD != nil || r.RateUSD != nil) ||
			w.usd >= 0 && (r.WorkUSD == nil || math.Abs(*r.WorkUSD-w.usd) > 0.01) {
			t.Errorf("%s costs %v, by hand %v", r.Offer, r.WorkUSD, w.usd)
		}
	}
}

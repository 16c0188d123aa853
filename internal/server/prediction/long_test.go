package prediction

import (
	"testing"

	api "scrimp/client"
	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
)

// Long work whose steps are unknown stays on spot while its slack allows it: its plan takes neither a rare report for a
// slow start nor loses hours of work for want of shorter steps.
func TestPlan_KeepsLongWorkOnSpot(t *testing.T) {
	t.Parallel()
	j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\ncheckpoint: {dir: c}\nwork: {time: 60d}\n"+
		"window: 22:00-06:00\ndeadline: in 250d\n"), "", now)
	must.Do(t, err)
	spot := onDemand("lab", "spot", 30_000_000_000)
	spot.Offer.Capacity, spot.Offer.ID = api.Spot, "lab/spot/m/spot"
	spot.Quote.Offer = spot.Offer.ID
	m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now},
		Offers: []api.Listing{spot, onDemand("lab", "firm", 100_000_000_000)}}
	p, _ := Of(j, m, api.Server{Market: m.Clock}, 10, func() bool { return false })
	if p.InTime == nil || *p.InTime < 1 {
		t.Errorf("in time in a share of %v of the runs: %q", p.InTime, p.Reasons)
	}
	if onSpot := 60 * 24 * 0.03; p.CostUSD == nil {
		t.Error("no cost")
	} else if p.CostUSD[1] > 1.5*onSpot {
		t.Errorf("it costs %v, and on spot alone $%.2f", *p.CostUSD, onSpot)
	}
}

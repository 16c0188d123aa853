package core

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/plan"
)

// A decision is recorded where what is taken or a reason differs, and not for the order
// in which the reasons are listed or for what a job that stays waits for.
func TestWhatChangesNothingIsNotRecorded(t *testing.T) {
	base := func() plan.Decision {
		return plan.Decision{Take: "a", Why: plan.Stays, Speed: 1, Rejected: []plan.Rejection{
			{Offer: "b", Why: plan.CostsMore}, {Offer: "c", Why: plan.Unavailable},
		}}
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		change          func(d *plan.Decision)
		same, remaining bool // same as the one before; a job that goes on waiting where it is
	}{
		"nothing":              {func(*plan.Decision) {}, true, false},
		"order of reasons":     {func(d *plan.Decision) { slices.Reverse(d.Rejected) }, true, false},
		"a reason":             {func(d *plan.Decision) { d.Rejected[1].Why = plan.CostsMore }, false, false},
		"an offer":             {func(d *plan.Decision) { d.Rejected[1].Offer = "d" }, false, false},
		"one reason less":      {func(d *plan.Decision) { d.Rejected = d.Rejected[:1] }, false, false},
		"what is taken":        {func(d *plan.Decision) { d.Take = "b" }, false, false},
		"a table is missing":   {func(d *plan.Decision) { d.TableSince = since }, false, true},
		"missing, and reasons": {func(d *plan.Decision) { d.TableSince, d.Rejected = since, nil }, false, true},
		"missing, and moves":   {func(d *plan.Decision) { d.TableSince, d.Take = since, "b" }, false, false},
		"missing, and waits":   {func(d *plan.Decision) { d.TableSince, d.Take = since, "" }, false, false},
		"missing, and slower":  {func(d *plan.Decision) { d.TableSince, d.Speed = since, 0.5 }, false, false},
	} {
		last, d := base(), base()
		c.change(&d)
		if got := same(&d, &last); got != c.same {
			t.Errorf("%s: same = %v, want %v", name, got, c.same)
		}
		if got := waitsWhereItIs(&d, &last); got != c.remaining {
			t.Errorf("%s: waitsWhereItIs = %v, want %v", name, got, c.remaining)
		}
	}
}

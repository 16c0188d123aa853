package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
)

// A job without a budget gets one that pays for a start of the dearest machine, however short its work is: with less it
// would wait for ever.
func TestBound_CoversAMinimumCharge(t *testing.T) {
	o := yardOffer("m", 0)
	o.Billing.Minimum = time.Hour
	for work, want := range map[time.Duration]int64{10 * time.Second: 3_660, 2 * time.Hour: 3 * 3600} { // seconds at $1 an hour
		y := newYard(t, 1, o)
		all := money.Picos(100e12)
		y.rules(budget.Limit{Scope: budget.All, Window: budget.Total, Dollars: &all})
		y.submit("a", "vision", "ann", func(t *core.Terms) { t.Work, t.HasBudget, t.Grace = work, false, time.Minute })
		j, _ := y.m.Job("a")
		rate := money.Rate(1e12)
		if got := j.Terms().Budget; got != rate.Until(time.Duration(want)*time.Second) || j.State() != core.Running {
			t.Errorf("%v of work: a budget of %v, %v", work, got, j.State())
		}
	}
}

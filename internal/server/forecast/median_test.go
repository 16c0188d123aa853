package forecast

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/sim"
)

// Ten hours of work on a machine at $3 an hour that nobody interrupts end after ten hours and cost $30: the median lies
// beyond exactly the deadlines before that, and the job is over exactly the budgets below that.
func TestMedian_AgreesWithHoursTimesPrice(t *testing.T) {
	const hours, dollarsAnHour = 10, 3
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := market.Offer{Provider: "local", Region: "r", Zone: "a", Machine: "m", Capacity: market.OnDemand, CPUs: 1,
		Memory: size.GiB, Speed: 1, Currency: money.USD}
	o.ID = market.ID(o)
	for _, c := range []struct{ deadline, budget int64 }{{8, 60}, {9, 20}, {12, 60}, {20, 28}, {20, 33}, {0, 60}} {
		q := sim.Scenario{Terms: core.Terms{Name: "j", Currency: money.USD, Priority: 1, Steps: 1000, Saves: true,
			Restart: time.Minute, Work: hours * time.Hour, HasBudget: true, Budget: money.Picos(c.budget * 1e12)}, Now: now,
			Pace: 1000.0 / hours, Restart: time.Minute, Save: time.Second, Runs: 3, Offers: []market.Offer{o},
			Hazards: map[market.OfferID]policy.Hazard{o.ID: {}},
			Quotes:  []market.Quote{{Offer: o.ID, Rate: dollarsAnHour * 1e12, Priced: true, Available: true, At: now}}}
		if c.deadline > 0 {
			q.Terms.Deadline = now.Add(time.Duration(c.deadline) * time.Hour)
		}
		played := sim.Ask(q)
		f := &Forecaster{}
		f.learn("j", q, played)
		m, ok := f.Median("j")
		over := c.budget < hours*dollarsAnHour
		if !ok || !m.At.Equal(now) || m.OverBudget != over || !m.Terms.Deadline.Equal(q.Terms.Deadline) {
			t.Errorf("%+v: %+v %v", c, m, ok)
		}
		if late := c.deadline > 0 && m.Finish.After(q.Terms.Deadline); !over && late != (0 < c.deadline && c.deadline <= hours) {
			t.Errorf("%+v: finishes %v after %v", c, m.Finish.Sub(now), now)
		}
	}
	if _, ok := new(Forecaster).Median("j"); ok {
		t.Error("a job without a forecast has a median")
	}
	endless := medianOf(&sim.Scenario{Now: now}, &sim.Forecast{Endless: 0.6, Finish: [3]time.Duration{1, 2, 3}})
	if !endless.Finish.IsZero() {
		t.Errorf("most runs do not end, and the median is %v", endless.Finish)
	}
}

package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// However old the price of the decision, the provider refuses the launch if it now costs over a quarter more: the
// provider compares Launch.MaxRate with its current price (tested in engine/enginetest), also after a restart.
func TestLaunch_StatesItsMaximumPrice(t *testing.T) {
	for name, c := range map[string]struct{ price, limit, want money.Rate }{
		"a quarter above what was seen":   {2e12, 0, 2.5e12},
		"the job's own limit is lower":    {2e12, 2.2e12, 2.2e12},
		"the job's own limit is higher":   {2e12, 9e12, 2.5e12},
		"what is free must be free still": {0, 0, 1},
		"more than there are numbers for": {1<<63 - 1, 0, 1<<63 - 1},
	} {
		m := core.New()
		m.Step(event(core.Configured{Config: core.DefaultConfig()}))
		m.Step(event(core.MarketSeen{
			Offers: []market.Offer{{ID: spotID, Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, Currency: money.USD}},
			Quotes: []market.Quote{{Offer: spotID, Rate: c.price, Priced: true, Available: true, At: start.Add(-24 * time.Hour)}},
		}))
		out := m.Step(event(core.JobSubmitted{Job: "j", Terms: core.Terms{Currency: money.USD, Need: plan.Need{MaxRate: c.limit}}}))
		asked := func(actions []core.Action) (money.Rate, bool) {
			for _, a := range actions {
				if l, ok := a.(core.Launch); ok {
					return l.MaxRate, true
				}
			}
			return 0, false
		}
		if got, ok := asked(out.Actions); !ok || got != c.want {
			t.Errorf("%s: the launch may cost %v (%v), want %v", name, got, ok, c.want)
		}
		state, err := m.Snapshot()
		must.Do(t, err)
		again, err := core.Restore(state)
		must.Do(t, err)
		if got, ok := asked(again.Pending()); !ok || got != c.want {
			t.Errorf("%s: after a restart it may cost %v (%v), want %v", name, got, ok, c.want)
		}
	}
}

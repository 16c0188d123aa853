package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// decisions returns the decisions of a step.
func decisions(out core.Outcome) (list []state.Decided) {
	for _, f := range out.Facts {
		if d, ok := f.(state.Decided); ok {
			list = append(list, d)
		}
	}
	return list
}

// flapping reports a day in which spot of the first zone comes and goes while that of the others stays, submits a job,
// and returns the decisions after it. If again is set, every poll reports unchanged offers too.
func flapping(t *testing.T, zones int, flaps, again bool) plan.Decision {
	t.Helper()
	m := core.New()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := func(after time.Duration, b core.Body) []state.Decided {
		now = now.Add(after)
		return decisions(m.Step(core.Event{At: now, Schema: core.Schema, Tenant: "t", Body: b}))
	}
	var offers []market.Offer
	var quotes []market.Quote
	sell := func(zone string, c market.Capacity, rate money.Rate) {
		o := market.Offer{Provider: "p", Region: "r", Zone: zone, Machine: "m", Capacity: c, CPUs: 1, Speed: 1, Currency: money.USD}
		o.ID = market.ID(o)
		offers = append(offers, o)
		quotes = append(quotes, market.Quote{Offer: o.ID, Rate: rate, Priced: true, Available: true, At: now})
	}
	for z := range zones {
		sell(string(rune('a'+z)), market.Spot, 1e12)
	}
	sell("a", market.OnDemand, 3e12)
	step(0, core.Configured{Config: core.DefaultConfig()})
	step(0, core.MarketSeen{Offers: offers, Quotes: quotes})
	for n := range 24 * 120 { // a look every 30 s, as in Config.Detect
		now = now.Add(30 * time.Second)
		up := !flaps || n/60%2 == 1 // half-hour periods
		if !again && (n == 0 && up || n > 0 && up == (!flaps || (n-1)/60%2 == 1)) {
			continue
		}
		told := quotes[:1]
		if again {
			told = quotes
		}
		for i := range told {
			told[i].At = now
		}
		told[0].Available = up
		step(0, core.MarketSeen{Quotes: append([]market.Quote{}, told...)})
	}
	made := step(30*time.Second, core.JobSubmitted{Job: "j", Terms: core.Terms{Name: "j", Currency: money.USD, Steps: 100, Work: 6 * time.Hour, Saves: true, Priority: 1, Restart: 3 * time.Minute, Deadline: now.Add(9 * time.Hour)}})
	if len(made) != 1 || made[0].Decision.Expect == nil {
		t.Fatalf("decided: %+v", made)
	}
	return made[0].Decision
}

// The decision about a new job uses the history of each offer: it does not expect spot that came and went all day to
// last, and does expect it of spot in the next zone that stayed.
func TestHazard_StartsFromEarlierObservations(t *testing.T) {
	calm, stormy := flapping(t, 1, false, false).Expect.Chance, flapping(t, 1, true, false).Expect.Chance
	if stormy > calm-0.005 {
		t.Errorf("one zone: until the next look it lasts with %.4f after a day of losses, %.4f after a day without", stormy, calm)
	}
	d := flapping(t, 3, true, false)
	zones := d.Expect.Zones
	if len(zones) != 3 {
		t.Fatalf("three zones are weighed as %+v", zones)
	}
	chance := map[market.OfferID]float64{}
	for _, z := range zones {
		chance[z.Offer] = z.Chance
	}
	if a, b, c := chance["p/a/m/spot"], chance["p/b/m/spot"], chance["p/c/m/spot"]; a > b-0.1 || b-c > 1e-9 || c-b > 1e-9 {
		t.Errorf("of three zones the one that came and went lasts an hour with %.3f, the others with %.3f and %.3f", a, b, c)
	}
	if d.Take == "p/a/m/spot" {
		t.Error("at equal prices the zone is taken whose machines were lost all day")
	}
}

// A market that reports only changes gives the same decisions as one that reports everything at each poll: a zone that
// was up all day is a day old either way.
func TestMarket_UnreportedOffersKeepTheirState(t *testing.T) {
	for _, flaps := range []bool{false, true} {
		once, often := flapping(t, 3, flaps, false), flapping(t, 3, flaps, true)
		if once.Take != often.Take || len(once.Expect.Zones) != len(often.Expect.Zones) {
			t.Fatalf("told once it takes %s, told often %s", once.Take, often.Take)
		}
		for i, z := range once.Expect.Zones {
			if o := often.Expect.Zones[i]; z.Chance < o.Chance-0.005 || z.Chance > o.Chance+0.005 {
				t.Errorf("flaps %v, %s: told once it lasts with %.3f, told often with %.3f", flaps, z.Offer, z.Chance, o.Chance)
			}
		}
	}
	if calm := flapping(t, 3, false, false).Expect.Zones[0].Chance; calm < 0.85 {
		t.Errorf("after a day without a loss spot lasts an hour with %.3f", calm)
	}
}

// A launch refused for lack of capacity shows that there is none, and the decision about the next job uses that. A
// refusal for another reason shows nothing.
func TestHazard_LearnsFromCapacityRefusals(t *testing.T) {
	chance := func(reason string) float64 {
		m := core.New()
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		step := func(after time.Duration, b core.Body) []state.Decided {
			now = now.Add(after)
			return decisions(m.Step(core.Event{At: now, Schema: core.Schema, Tenant: "t", Body: b}))
		}
		sell := func(c market.Capacity, rate money.Rate) (market.Offer, market.Quote) {
			o := market.Offer{Provider: "p", Region: "r", Zone: "a", Machine: "m", Capacity: c, CPUs: 1, Speed: 1, Currency: money.USD}
			o.ID = market.ID(o)
			return o, market.Quote{Offer: o.ID, Rate: rate, Priced: true, Available: true, At: now}
		}
		spot, cheap := sell(market.Spot, 1e12)
		firm, dear := sell(market.OnDemand, 3e12)
		step(0, core.Configured{Config: core.DefaultConfig()})
		step(0, core.MarketSeen{Offers: []market.Offer{spot, firm}, Quotes: []market.Quote{cheap, dear}})
		terms := core.Terms{Name: "j", Currency: money.USD, Steps: 100, Work: 6 * time.Hour, Saves: true, Priority: 1, Restart: 3 * time.Minute, Deadline: now.Add(40 * time.Hour)}
		step(5*time.Hour, core.JobSubmitted{Job: "j", Terms: terms})
		step(time.Second, core.LaunchRefused{Launch: "j.1", Reason: reason})
		step(time.Second, core.JobEnded{Job: "j"})
		made := step(2*time.Minute, core.JobSubmitted{Job: "k", Terms: terms})
		if len(made) == 0 || made[len(made)-1].Decision.Expect == nil {
			t.Fatalf("%s: decided %+v", reason, made)
		}
		return made[len(made)-1].Decision.Expect.Chance
	}
	if none, quota := chance("no_capacity"), chance("quota"); none > quota-0.001 {
		t.Errorf("it lasts until the next look with %.4f after a launch for which there was nothing, %.4f after one without a quota", none, quota)
	}
}

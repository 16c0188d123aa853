package core_test

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// shop is a machine with spot and on-demand in two zones, whose launches are granted.
type shop struct {
	t     *testing.T
	m     *core.Machine
	now   time.Time
	seen  core.MarketSeen
	build []core.BuildTable // requested
	n     int
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, m: core.NewWith(plan.NewPlanner().OnRequest()), now: start}
	for z := range 2 {
		for _, capacity := range []market.Capacity{market.Spot, market.OnDemand} {
			o := market.Offer{
				ID: market.OfferID(fmt.Sprintf("z%d/%s", z, capacity)), Provider: "p", Region: fmt.Sprint("r", z),
				Zone: fmt.Sprint("z", z), Machine: "m", Capacity: capacity, CPUs: 4, Speed: 1, Currency: money.USD,
			}
			rate := money.Rate(1e12)
			if capacity == market.OnDemand {
				rate = 3e12
			}
			s.seen.Offers = append(s.seen.Offers, o)
			s.seen.Quotes = append(s.seen.Quotes, market.Quote{
				Offer: o.ID, Rate: rate, Priced: true, Available: true, At: s.now,
			})
		}
	}
	s.tell(s.seen)
	return s
}

// tell steps, executes the actions except tables, and returns the number of decisions.
func (s *shop) tell(b core.Body) (decided int) {
	s.t.Helper()
	out := s.m.Step(core.Event{At: s.now, Schema: core.Schema, Tenant: "default", Body: b})
	decided = out.Decided
	for _, a := range out.Actions {
		switch a := a.(type) {
		case core.BuildTable:
			s.build = append(s.build, a)
		case core.Launch:
			s.n++
			id := fmt.Sprint("i-", s.n)
			decided += s.tell(core.LaunchDone{
				Launch: a.Allocation, Instance: id, Offer: a.Offer, Rate: 1e12, From: s.now,
			})
			decided += s.tell(core.AttemptStarted{Attempt: a.Allocation, Message: 1})
		}
	}
	for !out.Wake.IsZero() && !out.Wake.After(s.now) {
		out = s.m.Step(core.Event{At: s.now, Schema: core.Schema, Tenant: "default", Body: core.Tick{}})
		decided += out.Decided
	}
	return decided
}

func (s *shop) submit(id, zone string, deadline time.Duration) {
	t := core.Terms{
		Currency: money.USD, Priority: 1, Restart: 3 * time.Minute, Grace: time.Minute, Saves: true, Promise: 0.99,
		Need: plan.Need{Requirements: plan.Requirements{CPUs: 1, Zones: []string{zone}}},
	}
	if deadline > 0 {
		t.Work, t.Steps, t.Deadline = deadline/2, 600, s.now.Add(deadline)
	}
	s.tell(core.JobSubmitted{Job: id, Terms: t})
}

// later reports a new quote of an offer a minute later.
func (s *shop) later(id market.OfferID, rate money.Rate, available bool) (decided int) {
	s.now = s.now.Add(time.Minute)
	s.tell(core.Tick{})
	return s.tell(core.MarketSeen{Quotes: []market.Quote{{
		Offer: id, Rate: rate, Priced: true, Available: available, At: s.now,
	}}})
}

func TestQuote_ReviewsAffectedJobs(t *testing.T) {
	s := newShop(t)
	s.submit("a", "z0", 0)
	s.submit("b", "z1", 0)
	if len(s.m.Live()) != 2 {
		t.Fatal("the jobs do not run")
	}
	if n := s.later("z1/on-demand", 29e11, true); n != 1 {
		t.Errorf("a quote in the zone of one job: %d decisions", n)
	}
	if n := s.later("z0/spot", 11e11, true); n != 1 {
		t.Errorf("a quote of what one job holds: %d decisions", n)
	}
	if n := s.later("z0/spot", 11e11, false); n != 1 {
		t.Errorf("what one job holds cannot be had any more: %d decisions", n)
	}
	s.now = s.now.Add(time.Minute)
	small := market.Offer{
		ID: "small", Provider: "p", Region: "r0", Zone: "z0", Machine: "s", Capacity: market.Spot, Currency: money.USD,
	}
	quote := market.Quote{Offer: small.ID, Rate: 1e10, Priced: true, Available: true, At: s.now}
	if n := s.tell(core.MarketSeen{Offers: []market.Offer{small}, Quotes: []market.Quote{quote}}); n != 0 {
		t.Errorf("an offer that does for nobody: %d decisions", n)
	}
	small.CPUs, s.now = 4, s.now.Add(time.Minute) // from now on it does
	if n := s.tell(core.MarketSeen{Offers: []market.Offer{small}}); n != 1 {
		t.Errorf("an offer that has come to do for one: %d decisions", n)
	}
}

func TestTable_IsRequestedOnce(t *testing.T) {
	s := newShop(t)
	s.submit("a", "z0", 20*time.Hour)
	s.submit("b", "z0", 20*time.Hour)
	if len(s.build) != 1 || len(s.m.Live()) != 0 {
		t.Fatalf("%d tables are asked for, and %d jobs run without them", len(s.build), len(s.m.Live()))
	}
	if j, _ := s.m.Job("a"); j.Why() != string(plan.Weighing) || j.Last().TableSince.IsZero() {
		t.Fatalf("a job without its table: %s since %v", j.Why(), j.Last().TableSince)
	}
	table := plan.Build(s.build[0].Request)
	if s.build[0].Key() != "table/"+table.Key() {
		t.Fatalf("%s asks for table %s", s.build[0].Key(), table.Key())
	}
	s.m.Adopt(table)
	s.tell(core.TableReady{Table: table.Key(), Version: plan.TableVersion, Hash: table.Hash()})
	for _, id := range []string{"a", "b"} {
		if j, _ := s.m.Job(id); j.Attempt() == nil || !j.Last().TableSince.IsZero() || j.Last().Expect == nil {
			t.Errorf("%s was not decided with the table: %+v", id, j.Last())
		}
	}
}

func TestTable_IsRequestedAgainIfMissing(t *testing.T) {
	s := newShop(t)
	s.submit("a", "z0", 20*time.Hour)
	asked, again := map[string]time.Time{}, 0
	for first := s.now; s.now.Before(first.Add(time.Hour)); s.later("z0/on-demand", 3e12, true) {
		for _, a := range s.build {
			if before, ok := asked[a.Key()]; ok {
				if again++; s.now.Sub(before) < 10*time.Minute {
					t.Errorf("%s is asked for again after %v", a.Key(), s.now.Sub(before))
				}
			}
			asked[a.Key()] = s.now
		}
		s.build = nil
	}
	if again == 0 {
		t.Errorf("%d tables were asked for once", len(asked))
	}
	for _, a := range s.m.Pending() {
		if a.Kind() == "build_table" {
			t.Error("a restart asks for a table that nobody may need")
		}
	}
}

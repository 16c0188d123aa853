package server

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/engine"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
)

// deaf is a provider that answers no launch: tests report the results.
type deaf struct{ shut }

func (deaf) Launch(ctx context.Context, _ engine.Request) ([]engine.Instance, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// List does not answer either: the machines that tests report are in no list, and would be lost with the first one.
func (deaf) List(ctx context.Context) ([]engine.Instance, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// went plays a job through the server's core as a provider and an agent would report it.
func (w *world) went(id, spec string, steps int64, hours float64) {
	w.t.Helper()
	w.must("POST", "/v1/jobs", spec, nil)
	w.until(func(m *core.Machine) bool { _, asked := m.Allocation(id + ".1"); return asked })
	var at time.Time // the core's time, which earlier jobs have advanced
	var offer market.OfferID
	w.control.Read(func(m *core.Machine) {
		asked, _ := m.Allocation(id + ".1")
		at, offer = m.Now(), asked.Offer()
	})
	// Propose all events at once, so that the server does nothing of its own in between, hours earlier or later.
	var events []core.Event
	tell := func(after time.Duration, b core.Body) {
		events = append(events, core.Event{At: at.Add(after), Schema: core.Schema, Tenant: "default", Body: b})
	}
	a := id + ".1"
	took := time.Duration(hours * float64(time.Hour))
	tell(0, core.LaunchDone{Launch: a, Instance: "i-" + id, Offer: offer, Rate: 1e12, From: at})
	tell(time.Second, core.AgentClaimed{Attempt: a})
	tell(2*time.Second, core.AttemptStarted{Attempt: a, Message: 1})
	tell(took+2*time.Second, core.Progressed{Attempt: a, Message: 2, Step: steps, Total: steps,
		Metrics: map[string]float64{"peak_memory_gb": 17}})
	tell(took+3*time.Second, core.AttemptEnded{Attempt: a, Message: 3, Reason: "completed", Step: steps})
	tell(took+4*time.Second, core.InstanceEnded{Instance: "i-" + id, Until: at.Add(took + 4*time.Second),
		Cause: "terminated"})
	must.Do(w.t, w.control.Propose(w.t.Context(), events...))
}

func TestMeasured_ListsVisibleRunsNewestFirst(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	for _, team := range []string{"vision", "text"} {
		w.must("PUT", "/v1/teams/"+team, `{"projects":[]}`, nil)
	}
	err := w.control.Propose(t.Context(), core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: "default",
		Body: core.MarketSeen{
			Offers: []market.Offer{{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand,
				Currency: money.USD, CPUs: 8, Memory: 1 << 40, Accelerator: "L4", Accelerators: 1}},
			Quotes: []market.Quote{{Offer: "p/z/m/on-demand", Rate: 1e12, Priced: true, Available: true, At: w.control.Now()}},
		}})
	must.Do(t, err)
	spec := func(name, team string) string {
		return fmt.Sprintf(
			`{"spec":{"name":%q,"command":"train","team":%q,"model":{"config":"resnet-50"},"work":{"steps":1000,"samples":3600000}}}`, name, team)
	}
	w.went("lanes", spec("lanes", "vision"), 1000, 1)
	w.went("lanes-2", spec("lanes", "vision"), 1000, 2)
	w.went("words", spec("words", "text"), 1000, 1)
	w.must("POST", "/v1/jobs", spec("waits", "text"), nil)

	var all []runhistory.Run
	w.must("GET", "/v1/measured", nil, &all)
	if len(all) != 3 || all[0].Job != "words" || all[2].Job != "lanes" {
		t.Fatalf("%+v", all)
	}
	r := all[1]
	if r.Throughput == nil || *r.Throughput < 499 || *r.Throughput > 501 || r.Unit != "samples/s" ||
		r.Accelerator != "L4" || r.Cost.Sign() <= 0 || r.PeakMemory == nil || *r.PeakMemory != 17 || r.Model == nil ||
		r.Model.Config != "resnet-50" {
		b, _ := json.Marshal(r)
		t.Errorf("%s: 3.6 million samples in two hours are 500 a second", b)
	}
	var lanes []runhistory.Run
	w.must("GET", "/v1/measured?name=lanes&limit=1&expected=1", nil, &lanes)
	if len(lanes) != 1 || lanes[0].Job != "lanes-2" {
		t.Errorf("%+v: the newest of its name", lanes)
	}
	ann := w.user("ann", identity.Grant{Team: "text", Role: identity.Viewer})
	rec, _ := w.ask("GET", "/v1/measured", ann, nil)
	var hers []runhistory.Run
	if err := json.Unmarshal(rec.Body.Bytes(), &hers); err != nil || len(hers) != 1 || hers[0].Job != "words" {
		t.Errorf("%v %s", err, rec.Body)
	}
	for _, bad := range []string{"0", "-1", "1001", "x"} {
		if rec, p := w.ask("GET", "/v1/measured?limit="+bad, auth.OwnerName, nil); rec.Code != 400 || p.Field != "limit" {
			t.Errorf("limit %s: %d %+v", bad, rec.Code, p)
		}
	}
}

// Jobs have run on 4 processors for an hour, and on 8 for 0.651 hours: 0.698 of the work is shared. The plan of a job of
// cpus: 4..16 and the job that the server takes then have that share: 16 are 2.1 times as fast as 4, and its explanation
// says so. A stated share goes before the measured one.
func TestMeasured_RangesUseSpeedOfEarlierRuns(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	sells := func(cpus ...int) {
		var seen core.MarketSeen
		for _, n := range cpus {
			id := market.OfferID(fmt.Sprintf("p/z/m%d/on-demand", n))
			seen.Offers = append(seen.Offers, market.Offer{ID: id, Provider: "p", Zone: "z", Machine: fmt.Sprint("m", n),
				Capacity: market.OnDemand, Currency: money.USD, CPUs: n, Memory: 1 << 40})
			rate := money.Rate(1e12 + int64(n)*1e10)
			seen.Quotes = append(seen.Quotes, market.Quote{Offer: id, Rate: rate, Priced: true, Available: true, At: w.control.Now()})
		}
		must.Do(t, w.control.Propose(t.Context(), core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: "default", Body: seen}))
	}
	spec := func(name, cpus, more string) string {
		return fmt.Sprintf(`{"spec":{"name":%q,"command":"train","resources":{"cpus":%q},"work":{"steps":1000%s}}}`, name, cpus, more)
	}
	parallel := func(id string) (share float64) {
		w.control.Read(func(m *core.Machine) {
			if j, ok := m.Job(id); ok {
				share = j.Terms().Need.Parallel
			}
		})
		return share
	}
	sells(4, 8)
	w.went("train", spec("train", "4", ""), 1000, 1)
	w.must("POST", "/v1/jobs", spec("train", "4..16", ""), nil)
	if got := parallel("train-2"); got != 0 {
		t.Fatalf("with runs on one number the share is %v", got)
	}
	w.went("train-3", spec("train", "8", ""), 1000, 0.651)
	sells(4, 8, 16)

	var planned client.Plan
	w.must("POST", "/v1/plan", spec("train", "4..16", ""), &planned)
	if g := planned.Gets; g == nil || g.Units != 16 || math.Abs(g.Faster-2.1) > 0.01 || planned.Take != "p/z/m16/on-demand" {
		t.Errorf("planned: %q, %+v", planned.Take, g)
	}
	w.must("POST", "/v1/jobs", spec("train", "4..16", ""), nil)
	if got := parallel("train-4"); math.Abs(got-0.698) > 0.002 {
		t.Errorf("the job's share is %v, want 0.698", got)
	}
	var why []client.Decision
	w.must("GET", "/v1/jobs/train-4/explain", nil, &why)
	if len(why) == 0 || why[0].Gets.Units != 16 || math.Abs(why[0].Gets.Faster-2.1) > 0.01 {
		t.Errorf("explained: %+v", why)
	}
	w.must("POST", "/v1/jobs", spec("train", "4..16", `,"parallel":0.5`), nil)
	if got := parallel("train-5"); got != 0.5 {
		t.Errorf("a stated share is %v, want 0.5", got)
	}
}

// Jobs have run on one L4 for an hour, and on two for 0.651 hours: 0.698 of the work is shared, as above. Of 1..4
// accelerators a job gets 4 then, 2.1 times as fast as one, on the machine that it is planned on. Without those runs it
// gets the cheapest machine. A machine with more accelerators than the range allows is not for it.
func TestMeasured_RangesOfAcceleratorsUseSpeedOfEarlierRuns(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	sells := func(units ...int) {
		var seen core.MarketSeen
		for _, n := range units {
			id := market.OfferID(fmt.Sprintf("p/z/m%d/on-demand", n))
			seen.Offers = append(seen.Offers, market.Offer{ID: id, Provider: "p", Zone: "z", Machine: fmt.Sprint("m", n),
				Capacity: market.OnDemand, Currency: money.USD, CPUs: 8, Memory: 1 << 40, Accelerator: "L4", Accelerators: n})
			rate := money.Rate(1e12 + int64(n)*1e10)
			seen.Quotes = append(seen.Quotes, market.Quote{Offer: id, Rate: rate, Priced: true, Available: true, At: w.control.Now()})
		}
		must.Do(t, w.control.Propose(t.Context(), core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: "default", Body: seen}))
	}
	spec := func(accelerator string) string {
		return fmt.Sprintf(`{"spec":{"name":"train","command":"train","resources":{"accelerator":%q},"work":{"steps":1000}}}`, accelerator)
	}
	sells(1, 2)
	w.went("train", spec("L4:1"), 1000, 1)
	sells(4, 8)
	var planned client.Plan
	w.must("POST", "/v1/plan", spec("L4:1..4"), &planned)
	if planned.Take != "p/z/m1/on-demand" {
		t.Fatalf("with runs on one number it is planned on %q", planned.Take)
	}
	w.went("train-2", spec("L4:2"), 1000, 0.651)

	planned = client.Plan{}
	w.must("POST", "/v1/plan", spec("L4:1..4"), &planned)
	if g := planned.Gets; g == nil || g.Units != 4 || g.Least != 1 || g.Most != 4 || math.Abs(g.Faster-2.1) > 0.01 ||
		planned.Take != "p/z/m4/on-demand" {
		t.Errorf("planned: %q, %+v", planned.Take, g)
	}
	w.must("POST", "/v1/jobs", spec("L4:1..4"), nil)
	w.until(func(m *core.Machine) bool { _, asked := m.Allocation("train-3.1"); return asked })
	w.control.Read(func(m *core.Machine) {
		j, _ := m.Job("train-3")
		if asked := j.Asked(); asked.Offer() != "p/z/m4/on-demand" || math.Abs(j.Terms().Need.Parallel-0.698) > 0.002 {
			t.Errorf("it requests %s, with a share of %v", asked.Offer(), j.Terms().Need.Parallel)
		}
	})
	var why []client.Decision
	w.must("GET", "/v1/jobs/train-3/explain", nil, &why)
	if len(why) == 0 || why[0].Gets.Units != 4 || math.Abs(why[0].Gets.Faster-2.1) > 0.01 || why[0].Take != planned.Take {
		t.Fatalf("explained: %+v", why)
	}
	for _, r := range why[0].Rejected {
		if r.Offer == "p/z/m8/on-demand" && r.Why == "costs_more" {
			t.Errorf("the machine with 8 is rejected for its cost: %+v", r)
		}
	}
}

// BenchmarkMeasured searches a million jobs for a name without runs: it reads the whole list, in pieces between
// which the core goes on.
func BenchmarkMeasured(b *testing.B) {
	w := newWorldOf(b, deaf{}, nil)
	const n = 1_000_000
	w.control.Read(func(m *core.Machine) { // nothing else runs yet
		for i := range n {
			m.Step(core.Event{At: m.Now(), Schema: core.Schema, Tenant: "default",
				Body: core.JobSubmitted{Job: fmt.Sprint("j", i), Terms: core.Terms{Name: "other", Currency: money.USD}}})
		}
	})
	for b.Loop() {
		var list []client.Run
		if w.must("GET", "/v1/measured?name=none&limit=20", nil, &list); len(list) != 0 {
			b.Fatal(list)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

package prediction

import (
	"math"
	"slices"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/job/spec"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/money"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// ofOwn returns machines of the user at $0.80 an hour, including a marginal $0.12.
func ofOwn(count, inUse int, frees ...time.Duration) api.Listing {
	const term = 1000 * time.Hour
	o := api.Offer{ID: "lab/own/cpu4-8g/reserved", Provider: "lab", Region: "lab", Zone: "own", Machine: "cpu4-8g",
		Capacity: api.Reserved, CPUs: 4, Memory: 8 << 30, Speed: 1, Currency: "USD", Reserved: api.Reservation{Count: count,
			From: now.Add(-time.Hour), Until: now.Add(term - time.Hour), Paid: money.FromMicros(680_000*1000*int64(count), 0),
			Marginal: 120_000_000_000}}
	l := api.Listing{Offer: o, Quote: api.Quote{Offer: o.ID, Rate: 800_000_000_000, Priced: true, Available: inUse < count, At: now},
		InUse: inUse}
	for _, d := range frees {
		l.Frees = append(l.Frees, now.Add(d))
	}
	return l
}

// onDemand returns a machine in an engine's zone with the same speed.
func onDemand(engine, zone string, rate money.Rate) api.Listing {
	o := api.Offer{ID: engine + "/" + zone + "/m/on-demand", Provider: engine, Region: engine, Zone: zone, Machine: "m",
		Capacity: api.OnDemand, CPUs: 4, Memory: 8 << 30, Speed: 1, Currency: "USD"}
	return api.Listing{Offer: o, Quote: api.Quote{Offer: o.ID, Rate: rate, Priced: true, Available: true, At: now}}
}

// testRuns is the number of simulated runs of a plan in tests. Prices and availability are constant there, so a few
// runs suffice.
func testRuns() int { return lane.Pick(10, Runs) }

func plannedOn(t *testing.T, text string, sale ...api.Listing) api.Plan {
	t.Helper()
	j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\ncheckpoint: {dir: c}\nwork: {steps: 1000, time: 10h}\n"+text),
		"", now)
	must.Do(t, err)
	m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now}, Offers: sale}
	v := api.Server{Market: m.Clock}
	for _, name := range []string{"lab", "hpc"} {
		v.Engines = append(v.Engines, api.Engine{Name: name, Timing: api.EngineTiming{Detect: 30, Boot: 60, Consistency: 10}})
	}
	must.Do(t, Unknown(j, m, v))
	p, q := Of(j, m, v, testRuns(), nil)
	p.Engines = q.Compare(j)
	return p
}

// near verifies a figure against the computation by hand, to the cent.
func near(t *testing.T, what string, got *[3]float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(got[1]-want) > 0.01 {
		t.Errorf("%s: %v, by hand %.4f", what, got, want)
	}
}

// The costs in a plan are rates times hours: the full rate, and the marginal cost that an idle machine saves. The job
// starts where the marginal cost is lowest.
func TestPlan_ComparesFullAndMarginalCost(t *testing.T) {
	t.Parallel()
	gpu, cheap := onDemand("hpc", "gpu", 300_000_000_000), onDemand("hpc", "cheap", 100_000_000_000)
	unpriced := cheap
	unpriced.Quote.Priced = false
	for take, sale := range map[string][]api.Listing{
		"lab/own/cpu4-8g/reserved": {ofOwn(2, 0), gpu, unpriced}, // 0.12 and not 0.80 against 0.30
		"hpc/cheap/m/on-demand":    {ofOwn(2, 0), gpu, cheap},
	} {
		p := plannedOn(t, "any_of: [lab, hpc/gpu, hpc/cheap]\n", sale...)
		if p.Take != take || !p.Feasible {
			t.Errorf("it begins on %q (%s), and %s costs the least: feasible %v", p.Take, p.Why, take, p.Feasible)
		}
		full, marginal := map[string]float64{"lab": 0.80, "hpc/gpu": 0.30, "hpc/cheap": 0.10},
			map[string]float64{"lab": 0.12, "hpc/gpu": 0.30, "hpc/cheap": 0.10}
		if len(p.Engines) != 3 {
			t.Fatalf("engines %+v", p.Engines)
		}
		for _, e := range p.Engines {
			if e.Engine == "hpc/cheap" && !sale[2].Quote.Priced {
				if e.CostUSD != nil || e.Feasible {
					t.Errorf("%s has no price, and says %+v", e.Engine, e)
				}
				continue
			}
			hours := e.FinishS[1] / 3600
			if hours < 10 || hours > 10.2 {
				t.Errorf("%s: done in %.2f h, and the work takes 10 h", e.Engine, hours)
			}
			near(t, e.Engine, e.CostUSD, full[e.Engine]*hours)
			near(t, e.Engine+" marginal", e.MarginalUSD, marginal[e.Engine]*hours)
			if e.Engine == "lab" && take == "lab/own/cpu4-8g/reserved" {
				near(t, "the plan", p.CostUSD, e.CostUSD[1])
				near(t, "the plan, marginal", p.MarginalUSD, e.MarginalUSD[1])
			}
		}
	}
}

// A plan distinguishes an engine that does not answer from one without offers.
func TestPlan_NamesUnresponsiveEngines(t *testing.T) {
	t.Parallel()
	j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\nwork: {time: 1h}\nany_of: [lab, hpc/gpu]\n"), "", now)
	must.Do(t, err)
	m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now}, Offers: []api.Listing{ofOwn(1, 0)},
		Away: []api.AwayEngine{{Name: "hpc", Error: "squeue\n  says nothing"}}}
	_, q := Of(j, m, api.Server{Market: m.Clock}, testRuns(), nil)
	list := q.Compare(j)
	if len(list) != 2 || list[0].Error != "squeue says nothing" || list[0].CostUSD != nil || list[1].Error != "" ||
		list[1].CostUSD == nil {
		t.Errorf("%+v", list)
	}
}

// If others use the machines, a job starts once one is expected to be free, costs money from then on, and is feasible
// unless its deadline is earlier.
func TestPlan_WaitsForMachinesInUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		own      api.Listing
		wait     time.Duration // negative if unknown
		feasible bool
	}{
		{"", ofOwn(1, 1, 3*time.Hour), 3 * time.Hour, true},
		{"", ofOwn(2, 2, 2*time.Hour, 9*time.Hour), 2 * time.Hour, true},
		{"nodes: 2\n", ofOwn(2, 2, 2*time.Hour, 9*time.Hour), 9 * time.Hour, true},
		{"nodes: 2\n", ofOwn(2, 1, 5*time.Hour), 5 * time.Hour, true},
		{"deadline: in 20h\n", ofOwn(1, 1, 3*time.Hour), 3 * time.Hour, true},
		{"deadline: in 12h\n", ofOwn(1, 1, 3*time.Hour), 3 * time.Hour, false},
		{"", ofOwn(1, 1), -1, true},
		{"deadline: in 12h\n", ofOwn(1, 1), -1, true},
		{"deadline: in 9h\n", ofOwn(1, 1), -1, false},
	} {
		p := plannedOn(t, c.text+"any_of: lab\n", c.own, onDemand("hpc", "gpu", 1_000_000_000_000))
		if p.Feasible != c.feasible || p.Take != "" || p.WaitsFor != c.own.Offer.ID {
			t.Errorf("%s: feasible %v, begins on %q, waits for %q: %v", c.text, p.Feasible, p.Take, p.WaitsFor, p.Reasons)
		}
		wait := max(0, c.wait)
		switch {
		case (p.BeginS == nil) != (c.wait < 0):
			t.Errorf("%s: begins in %v, and others leave in %v", c.text, p.BeginS, c.wait)
		case p.BeginS != nil && math.Abs(*p.BeginS-wait.Seconds()) > 300:
			t.Errorf("%s: begins in %.0f s, and others leave in %v", c.text, *p.BeginS, c.wait)
		}
		if !c.feasible {
			continue
		}
		hours, nodes := (p.FinishS[1]-wait.Seconds())/3600, float64(max(1, p.Nodes))
		if hours < 10 || hours > 10.3 {
			t.Errorf("%s: done %.2f h after it began", c.text, hours)
		}
		if slack := 0.1 * 0.8 * nodes; math.Abs(p.CostUSD[1]-0.8*hours*nodes) > slack {
			t.Errorf("%s: costs %v, by hand %.2f", c.text, p.CostUSD, 0.8*hours*nodes)
		}
	}
}

// A job does not wait for a machine in use if another offer is available at once, or if it needs more of them than
// exist.
func TestPlan_DoesNotWaitForMachinesInUseNeedlessly(t *testing.T) {
	t.Parallel()
	p := plannedOn(t, "", ofOwn(1, 1), onDemand("hpc", "gpu", 1_000_000_000_000))
	if p.Take != "hpc/gpu/m/on-demand" || p.WaitsFor != "" {
		t.Errorf("it begins on %q and waits for %q", p.Take, p.WaitsFor)
	}
	p = plannedOn(t, "nodes: 2\nany_of: lab\n", ofOwn(1, 1, time.Hour))
	if p.Feasible || p.WaitsFor != "" {
		t.Errorf("of one machine it waits for two: %+v", p)
	}
	if !slices.Contains([]string{"no_offer", "no_capacity"}, p.Why) {
		t.Errorf("it says %v", p.Why)
	}
}

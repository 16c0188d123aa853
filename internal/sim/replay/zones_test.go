package replay

import (
	"math/rand/v2"
	"os"
	"reflect"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/tick/multizone"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// publicZones reads the windows of the public benchmark with several zones, or skips the test if the data is missing.
func publicZones(t testing.TB) []multizone.Window {
	t.Helper()
	a, err := os.Open(data + "zones_public_availability.csv")
	if err != nil {
		t.Skip("SKIPPED: the public traces of several zones are not beside the repository (../shared/data/spot)")
	}
	defer func() { _ = a.Close() }()
	p, err := os.Open(data + "zones_public_spot_price.csv")
	if err != nil {
		t.Skip("SKIPPED: the public traces of several zones are not beside the repository (../shared/data/spot)")
	}
	defer func() { _ = p.Close() }()
	windows, err := multizone.Read("availability", a, "prices", p)
	must.Do(t, err)
	return windows
}

// generatedZones returns generated runs: zones in two regions, with moving prices.
func generatedZones(n int, looks bool) []multizone.Run {
	rng := rand.New(rand.NewPCG(8, 8))
	var runs []multizone.Run
	for i := range n {
		r := multizone.Run{Window: i, Job: zonechoice.Job{
			Tick: 195 * time.Second, Work: 10 * time.Hour, Deadline: []time.Duration{12, 15, 20}[i%3] * time.Hour,
			Restart: 3 * time.Minute, Transfer: 90 * time.Second, Carry: money.Picos(1_000_000_000_000), Looks: looks,
		}}
		if i%2 == 1 {
			r.Job.Restart = 12 * time.Minute
		}
		for z := range 1 + rng.IntN(4) {
			region := []string{"east", "west"}[rng.IntN(2)]
			r.Job.Zones = append(r.Job.Zones, zonechoice.Zone{Name: region + string(rune('a'+z)), Region: region, OnDemand: 3_060_000_000_000})
			trace := &multizone.Trace{}
			up, price := rng.IntN(2) == 0, money.Rate(700_000_000_000+rng.Int64N(600_000_000_000))
			for len(trace.Up) < r.Job.Ticks() {
				for range min(1+int(3/(rng.Float64()+0.01)), 200) {
					trace.Up, trace.Price = append(trace.Up, up), append(trace.Price, price)
				}
				up = !up
				if rng.IntN(3) == 0 {
					price = price * money.Rate(90+rng.Int64N(21)) / 100
				}
			}
			r.Traces = append(r.Traces, trace)
		}
		runs = append(runs, r)
	}
	return runs
}

// unequal gives the zones of runs on-demand prices that differ by region, spot prices of 0.15 to 0.85 of them, and
// egress costs that differ by route.
func unequal(runs []multizone.Run) []multizone.Run {
	rng := rand.New(rand.NewPCG(8, 9))
	for i := range runs {
		j := &runs[i].Job
		price := map[string]money.Rate{}
		for z := range j.Zones {
			at := j.Zones[z].Region
			if price[at] == 0 {
				price[at] = money.Rate(2_400_000_000_000 + rng.Int64N(1_200_000_000_000))
			}
			j.Zones[z].OnDemand = price[at] * money.Rate(100+rng.Int64N(5)) / 100
			for t, share := 0, 15+rng.Int64N(60); t < len(runs[i].Traces[z].Price); t++ {
				if rng.IntN(100) == 0 {
					share = 15 + rng.Int64N(70)
				}
				runs[i].Traces[z].Price[t] = j.Zones[z].OnDemand * money.Rate(share) / 100
			}
		}
		for _, from := range []string{"east", "west"} {
			for _, to := range []string{"east", "west"} {
				if from != to {
					j.Egress = append(j.Egress, zonechoice.Fare{From: from, To: to, Cost: money.Picos(rng.Int64N(90_000_000_000_000))})
				}
			}
		}
	}
	return runs
}

func plain(rule policy.Rule) func(*zonechoice.Job) zonechoice.Policy {
	return map[policy.Rule]func(*zonechoice.Job) zonechoice.Policy{
		policy.OnDemand:         func(j *zonechoice.Job) zonechoice.Policy { return &zonechoice.Certain{Job: j} },
		policy.GreedyGuard:      func(j *zonechoice.Job) zonechoice.Policy { return &zonechoice.Greedy{Job: j} },
		policy.UniformProgress:  func(j *zonechoice.Job) zonechoice.Policy { return &zonechoice.Uniform{Job: j, Second: true} },
		policy.UniformProgress2: func(j *zonechoice.Job) zonechoice.Policy { return &zonechoice.Uniform{Job: j} },
	}[rule]
}

// The core costs the same as the plain loop over several zones, run by run: with machines in many zones, live prices,
// checkpoint transfers and probes.
func TestZones_CostsSameAsPlainLoop(t *testing.T) {
	for _, looks := range []bool{false, true} {
		name := map[bool]string{false: "sees all", true: "looks"}[looks]
		t.Run("generated, "+name, func(t *testing.T) { sameZones(t, generatedZones(lane.Pick(20, 120), looks), looks) })
		t.Run("unequal prices, "+name, func(t *testing.T) {
			sameZones(t, unequal(generatedZones(lane.Pick(40, 120), looks)), looks)
		})
		t.Run("public, "+name, func(t *testing.T) {
			runs, _, err := multizone.Runs(publicZones(t), looks)
			must.Do(t, err)
			var some []multizone.Run
			for i := 0; i < len(runs); i += lane.Pick(35, 7) {
				some = append(some, runs[i])
			}
			sameZones(t, some, looks)
		})
	}
}

func sameZones(t *testing.T, runs []multizone.Run, looks bool) {
	for _, rule := range []policy.Rule{policy.OnDemand, policy.GreedyGuard, policy.UniformProgress, policy.UniformProgress2} {
		bad := 0
		for i := range runs {
			r := &runs[i]
			want, got := r.Play(plain(rule)(&r.Job)), Zones(r, plan.NewPlanner(), rule, false)
			// Each price segment's cost is truncated by itself.
			off := want.Cost.Sub(got.Cost)
			if off.Sign() < 0 {
				off = off.Neg()
			}
			if off.Cmp(money.Picos(1000)) > 0 || got.Missed != want.Missed || got.Carries != want.Carries {
				if bad++; bad <= 3 {
					t.Errorf("%s, group %d window %d %v by %v: core %v, %d carries, late %v; plain %v, %d carries, late %v",
						rule, r.Group, r.Window, r.Job.Work, r.Job.Deadline, got.Cost.Float(), got.Carries, got.Missed, want.Cost.Float(), want.Carries, want.Missed)
				}
			}
		}
		if bad > 0 {
			t.Errorf("%s: %d of %d runs differ", rule, bad, len(runs))
		}
	}
}

// A restarted server loses only its planner's tables. The observations of the zones are in the state, so the run
// continues unchanged.
func TestZones_RestartChangesNothing(t *testing.T) {
	for _, looks := range []bool{false, true} {
		for i, r := range generatedZones(lane.Pick(3, 6), looks) {
			if len(r.Job.Zones) < 2 {
				continue
			}
			restarts := 0
			want := Zones(&r, plan.NewPlanner(), policy.Default, true)
			got := zones(&r, plan.NewPlanner(), policy.Default, true, func(m *core.Machine) *core.Machine {
				if restarts++; restarts%7 != 0 {
					return m
				}
				kept, err := m.Snapshot()
				must.Do(t, err)
				if m, err = core.Restore(kept); err != nil {
					t.Fatal(err)
				}
				return m
			})
			if !reflect.DeepEqual(want, got) || restarts < 14 {
				t.Errorf("run %d, looks %v: %v, %d launches, %d decisions; with %d restarts %v, %d launches, %d decisions",
					i, looks, want.Cost.Float(), want.Launches, want.Decisions, restarts/7, got.Cost.Float(), got.Launches, got.Decisions)
			}
		}
	}
}

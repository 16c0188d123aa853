package replay

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/tick"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

const data = "../../../../shared/data/spot/"

// public reads the runs of the public benchmark, or skips the test if the data is missing.
func public(t testing.TB) []tick.Run {
	t.Helper()
	a, err := os.Open(data + "availability_2022.csv")
	if err != nil {
		t.Skip("SKIPPED: the public traces are not beside the repository (../shared/data/spot)")
	}
	defer func() { _ = a.Close() }()
	w, err := os.Open(data + "windows_2022.csv")
	if err != nil {
		t.Skip("SKIPPED: the public traces are not beside the repository (../shared/data/spot)")
	}
	defer func() { _ = w.Close() }()
	windows, err := tick.ReadSingle(a, "availability_2022.csv", w, "windows_2022.csv")
	must.Do(t, err)
	runs, err := tick.SingleRuns(windows)
	must.Do(t, err)
	return runs
}

// generated returns generated runs, heavy-tailed like the public ones.
func generated(n int) []tick.Run {
	rng := rand.New(rand.NewPCG(7, 7))
	runs := make([]tick.Run, n)
	for i := range runs {
		j := tick.Job{Work: 48 * time.Hour, Deadline: 52 * time.Hour, Overhead: 3 * time.Minute, Gap: 10 * time.Minute, Spot: 973_100_000_000, OnDemand: 3_060_000_000_000}
		if i%2 == 1 {
			j.Deadline = 70 * time.Hour
		}
		if i%4 > 1 {
			j.Overhead = 12 * time.Minute
		}
		runs[i] = tick.Run{Zone: "generated", Window: i, Job: j}
		up := rng.IntN(2) == 0
		for len(runs[i].Up) < j.Ticks() {
			for range min(1+int(2/(rng.Float64()+0.01)), 150) {
				runs[i].Up = append(runs[i].Up, up)
			}
			up = !up
		}
	}
	return runs
}

// The core, with its events, attempts and books, costs the same as a plain loop over the ticks, run by run.
func TestSingle_CostsSameAsPlainLoop(t *testing.T) {
	t.Run("generated", func(t *testing.T) { same(t, generated(lane.Pick(20, 60))) })
	t.Run("public", func(t *testing.T) {
		var some []tick.Run
		for i, r := range public(t) {
			if i%lane.Pick(41, 1) == 0 {
				some = append(some, r)
			}
		}
		same(t, some)
	})
}

func same(t *testing.T, runs []tick.Run) {
	for _, b := range []tick.Baseline{"on-demand", "greedy", "uniform-progress", "uniform-progress-2"} {
		bad := 0
		for _, r := range runs {
			want := r.Play(b.Make(r.Job))
			got := Single(r, plan.NewPlanner(), policy.Rule(b), false)
			// Each attempt's cost is truncated by itself.
			off := want.Cost.Sub(got.Cost)
			if off.Sign() < 0 || off.Cmp(money.Picos(int64(got.Launches))) > 0 || got.Missed != want.Missed || got.Interruptions != want.Lost {
				if bad++; bad <= 3 {
					t.Errorf("%s, %s window %d (%v, %v): the core costs %v (missed %v, %d lost), the plain loop %v (missed %v, %d lost)", b, r.Zone, r.Window, r.Job.Deadline, r.Job.Overhead,
						got.Cost, got.Missed, got.Interruptions, want.Cost, want.Missed, want.Lost)
				}
			}
		}
		if bad > 0 {
			t.Errorf("%s: %d runs differ", b, bad)
		}
	}
}

// BenchmarkDecisions measures the decisions per second through core.Step, with their events, attempts and postings.
func BenchmarkDecisions(b *testing.B) {
	runs := public(b)
	n, dollars := 0, 0.0
	for i := 0; b.Loop(); i++ {
		out := Single(runs[i%len(runs)], plan.NewPlanner(), policy.UniformProgress, false)
		n += out.Decisions
		dollars += out.Cost.Float()
	}
	if n == 0 || dollars == 0 {
		b.Fatal("nothing was decided")
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "decisions/s")
}

package onezone_test

import (
	"os"
	"testing"
	"time"

	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/sim/tick"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

type player struct {
	s     *onezone.Solver
	j     tick.Job
	watch onezone.Watch
}

func (p *player) Decide(v tick.View) tick.Kind {
	now := time.Unix(0, 0).Add(time.Duration(v.Tick) * p.j.Gap)
	p.watch = p.watch.See(now, v.Available)
	got := p.s.Decide(onezone.State{
		Until: p.j.Deadline - time.Duration(v.Tick)*p.j.Gap, Left: v.Left,
		Held: v.Held, Owed: v.Outstanding, Market: p.watch.At(now),
	})
	return got.Choice
}

func runs(t testing.TB) []tick.Run {
	const folder = "../../../../../shared/data/spot/"
	avail, err := os.Open(folder + "availability_2022.csv")
	if err != nil {
		t.Skipf("SKIPPED: the public traces are not beside the repository: %v", err)
	}
	defer avail.Close()
	windows, err := os.Open(folder + "windows_2022.csv")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	defer windows.Close()
	list, err := tick.ReadSingle(avail, "availability_2022.csv", windows, "windows_2022.csv")
	must.Do(t, err)
	all, err := tick.SingleRuns(list)
	must.Do(t, err)
	return all
}

// play runs all traces under solvers of the prior and prints the parts.
func play(runs []tick.Run, prior onezone.Prior) (all tick.Score, parts map[[2]time.Duration]*tick.Score) {
	solvers := map[[2]time.Duration]*onezone.Solver{}
	parts = map[[2]time.Duration]*tick.Score{}
	for _, r := range runs {
		k := [2]time.Duration{r.Job.Deadline, r.Job.Overhead}
		if solvers[k] == nil {
			solvers[k] = onezone.New(onezone.Problem{Deadline: r.Job.Deadline, Overhead: r.Job.Overhead, Grid: r.Job.Gap, Spot: .9731, OnDemand: 3.06, Whole: true}, prior)
			parts[k] = &tick.Score{}
		}
		res := r.Play(&player{s: solvers[k], j: r.Job})
		all.Add(res)
		parts[k].Add(res)
	}
	return all, parts
}

func TestBenchmark_CostsLessThanPublishedPolicies(t *testing.T) {
	lane.Nightly(t, "it plays the 960 runs of the public benchmark")
	all, parts := play(runs(t), onezone.Public)
	for k, s := range parts {
		t.Logf("%v %.3f", k, s.Mean())
	}
	t.Logf("mean %.3f misses %d", all.Mean(), all.Misses)
	if all.Misses != 0 || all.Mean() > 99.25 {
		t.Errorf("%d misses, %.3f dollars", all.Misses, all.Mean())
	}
}

func BenchmarkTable(b *testing.B) {
	p := onezone.Problem{Deadline: 70 * time.Hour, Overhead: 12 * time.Minute, Grid: 10 * time.Minute, Spot: .9731, OnDemand: 3.06}
	b.ReportAllocs()
	for b.Loop() {
		s := onezone.New(p, onezone.Public)
		s.Decide(onezone.State{Until: 70 * time.Hour, Left: 48 * time.Hour})
		if s.Made != 1 {
			b.Fatal(s.Made)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	p := onezone.Problem{Deadline: 70 * time.Hour, Overhead: 12 * time.Minute, Grid: 10 * time.Minute, Spot: .9731, OnDemand: 3.06}
	s := onezone.New(p, onezone.Public)
	m := onezone.Market{Up: true, Age: time.Hour, Odds: onezone.Odds{UpLog: 1, UpCount: 3, GapLog: 1, GapCount: 3, UpHours: 5, Hours: 6}}
	b.ReportAllocs()
	for b.Loop() {
		s.Decide(onezone.State{Until: 60 * time.Hour, Left: 40 * time.Hour, Held: onezone.Spot, Market: m})
	}
}

// TestTicks_OfAnotherLengthCostTheSame plays some of the runs with every tick split in two, and with half of the
// ticks.
func TestTicks_OfAnotherLengthCostTheSame(t *testing.T) {
	lane.Nightly(t, "it plays an eighth of the public benchmark at three resolutions")
	var some [3][]tick.Run
	for i, r := range runs(t) {
		if i%16 != 5 && i%16 != 10 {
			continue
		}
		half, double := r, r
		half.Job.Gap, double.Job.Gap = 5*time.Minute, 20*time.Minute
		half.Up, double.Up = nil, nil
		for j, up := range r.Up {
			half.Up = append(half.Up, up, up)
			if j%2 == 0 {
				double.Up = append(double.Up, up)
			}
		}
		some[0], some[1], some[2] = append(some[0], r), append(some[1], half), append(some[2], double)
	}
	var ours, theirs [3]float64
	for k, list := range some {
		all, _ := play(list, onezone.Public)
		var up tick.Score
		for _, r := range list {
			up.Add(r.Play(tick.UniformProgress2.Make(r.Job)))
		}
		ours[k], theirs[k] = all.Mean(), up.Mean()
		t.Logf("ticks of %v: $%.3f, uniform progress $%.3f, %d misses of %d", list[0].Job.Gap, ours[k], theirs[k], all.Misses, all.Runs)
		if all.Misses > 0 || ours[k] > theirs[k]*0.98 {
			t.Errorf("ticks of %v: $%.3f and %d misses, uniform progress $%.3f", list[0].Job.Gap, ours[k], all.Misses, theirs[k])
		}
	}
	if ours[1] > ours[0]*1.01 {
		t.Errorf("looked at twice as often a run costs $%.3f in place of $%.3f", ours[1], ours[0])
	}
}

package tick

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// publicRuns reads the public traces beside the repository.
func publicRuns(t testing.TB) []Run {
	t.Helper()
	const folder = "../../../../shared/data/spot/"
	avail, err := os.Open(folder + "availability_2022.csv")
	if err != nil {
		t.Skipf("SKIPPED: the public traces are not beside the repository: %v", err)
	}
	defer avail.Close()
	windows, err := os.Open(folder + "windows_2022.csv")
	if err != nil {
		t.Skipf("SKIPPED: the public windows are not beside the repository: %v", err)
	}
	defer windows.Close()
	list, err := ReadSingle(avail, "availability_2022.csv", windows, "windows_2022.csv")
	must.Do(t, err)
	runs, err := SingleRuns(list)
	must.Do(t, err)
	if len(runs) != 960 {
		t.Fatalf("%d runs, want 960", len(runs))
	}
	return runs
}

// part returns the deadline and overhead of a run.
func part(j Job) [2]time.Duration { return [2]time.Duration{j.Deadline, j.Overhead} }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.0006 {
		t.Errorf("%s: %.4f dollars, published %.3f", what, got, want)
	}
}

// TestBaselines_MatchPublishedCents compares the rules with the figures of two other programs: 147.645, 115.85, 105.142
// with its parts, 102.815.
func TestBaselines_MatchPublishedCents(t *testing.T) {
	runs := publicRuns(t)
	parts := map[[2]time.Duration]*Score{}
	want := map[Baseline]float64{Demand: 147.645, Greedy: 115.85, UniformProgress: 105.142, UniformProgress2: 102.815}
	for _, b := range Baselines() {
		var all Score
		for _, r := range runs {
			res := r.Play(b.Make(r.Job))
			all.Add(res)
			if b == UniformProgress {
				if parts[part(r.Job)] == nil {
					parts[part(r.Job)] = &Score{}
				}
				parts[part(r.Job)].Add(res)
			}
		}
		t.Logf("%-20s %9.4f  misses %d", b, all.Mean(), all.Misses)
		if b == Greedy { // published to the cent only
			if math.Abs(all.Mean()-want[b]) > 0.005 {
				t.Errorf("%s: %.4f dollars, published %.2f", b, all.Mean(), want[b])
			}
		} else {
			near(t, string(b), all.Mean(), want[b])
		}
		if all.Misses != 0 {
			t.Errorf("%s misses %d deadlines", b, all.Misses)
		}
	}
	for p, want := range map[[2]time.Duration]float64{
		{52 * time.Hour, 3 * time.Minute}: 108.658, {52 * time.Hour, 12 * time.Minute}: 124.364,
		{70 * time.Hour, 3 * time.Minute}: 87.477, {70 * time.Hour, 12 * time.Minute}: 100.069,
	} {
		near(t, "uniform-progress at "+p[0].String()+" and "+p[1].String(), parts[p].Mean(), want)
	}
}

// TestOptimum_MatchesPublishedCents: 94.270 over all runs, 101.64 and 86.90 by deadline.
func TestOptimum_MatchesPublishedCents(t *testing.T) {
	lane.Nightly(t, "it solves the 960 runs of the public benchmark")
	var all, tight, loose Score
	for _, r := range publicRuns(t) {
		cost, ok := r.Optimum()
		if !ok {
			t.Fatalf("%s window %d: no optimum", r.Zone, r.Window)
		}
		all.Add(Result{Cost: cost})
		if r.Job.Deadline == 52*time.Hour {
			tight.Add(Result{Cost: cost})
		} else {
			loose.Add(Result{Cost: cost})
		}
	}
	near(t, "optimum", all.Mean(), 94.270)
	if math.Abs(tight.Mean()-101.64) > 0.006 || math.Abs(loose.Mean()-86.90) > 0.006 {
		t.Errorf("by deadline: %.3f and %.3f, published 101.64 and 86.90", tight.Mean(), loose.Mean())
	}
}

// always gives the same answer, so only the guard can meet the deadline.
type always Kind

func (a always) Decide(View) Kind { return Kind(a) }

func small() Job {
	return Job{Work: time.Hour, Deadline: 2 * time.Hour, Overhead: 12 * time.Minute, Gap: 10 * time.Minute, Spot: 1_000_000_000_000, OnDemand: 3_000_000_000_000}
}

func TestGuard_MeetsDeadlineOfWaitingJob(t *testing.T) {
	j := small()
	got := Run{Job: j, Up: make([]bool, 12)}.Play(always(None))
	// Twelve ticks; 72 min of machine time need eight, and the guard acts with nine left.
	if got.Missed || got.DemandTicks != 8 || got.Ticks > 12 || got.Cost.String() != "4" {
		t.Errorf("%+v", got)
	}
}

func TestPlay_ServesOverheadLongerThanTickExactly(t *testing.T) {
	up := []bool{true, true, true, true, true, true, true, true, true, true, true, true}
	got := Run{Job: small(), Up: up}.Play(Greedy.Make(small()))
	if got.SpotTicks != 8 || got.Overhead != 12*time.Minute || got.Cost.String() != "1.333333333333" {
		t.Errorf("%+v", got)
	}
	if opt, ok := (Run{Job: small(), Up: up}).Optimum(); !ok || opt != got.Cost {
		t.Errorf("the optimum is %v, spot throughout costs %v", opt, got.Cost)
	}
}

func TestPlay_ImpossibleDeadlineIsMiss(t *testing.T) {
	j := small()
	j.Deadline = time.Hour
	r := Run{Job: j, Up: make([]bool, 6)}
	if got := r.Play(always(OnDemand)); !got.Missed {
		t.Errorf("%+v", got)
	}
	if _, ok := r.Optimum(); ok {
		t.Error("an optimum that cannot be")
	}
}

// The programme's twin is a search through all choices.
func TestOptimum_EqualsExhaustiveSearch(t *testing.T) {
	j := small()
	j.Work, j.Deadline = 40*time.Minute, 100*time.Minute
	for mask := range 1 << 10 {
		if mask%7 != 0 {
			continue
		}
		up := make([]bool, 10)
		for i := range up {
			up[i] = mask>>i&1 == 1
		}
		r := Run{Job: j, Up: up}
		got, ok := r.Optimum()
		want := every(r, 0, View{Left: j.Work}, 0)
		if !ok || math.Abs(got.Float()-want) > 1e-9 {
			t.Fatalf("market %010b: %v, trying every choice finds %v", mask, got, want)
		}
	}
}

func every(r Run, t int, v View, spent float64) float64 {
	if v.Left <= 0 {
		return spent
	}
	if t == r.Job.Ticks() {
		return math.Inf(1)
	}
	best := math.Inf(1)
	if v.Held == Spot && !r.Up[t] {
		v.Held, v.Outstanding = None, 0
	}
	for _, kind := range []Kind{None, Spot, OnDemand} {
		if kind == Spot && !r.Up[t] {
			continue
		}
		n, cost := v, spent
		if kind != v.Held {
			n.Held, n.Outstanding = kind, r.Job.Overhead
		}
		if kind != None {
			served := min(n.Outstanding, r.Job.Gap)
			n.Outstanding -= served
			n.Left -= r.Job.Gap - served
			cost += map[Kind]float64{Spot: 1, OnDemand: 3}[kind] / 6
		}
		best = min(best, every(r, t+1, n, cost))
	}
	return best
}

func TestReadSingle_ErrorNamesLineFieldAndFix(t *testing.T) {
	const ah, wh = "zone,start_tick,ticks,available\n", "zone,window,start_tick,ticks\n"
	for _, c := range []struct{ avail, windows, want string }{
		{"", wh, "read a.csv: no rows"},
		{"zone,start\n", wh, "line 1: the header"},
		{ah + "a,0,5\n", wh, "line 2: 3 fields: write 4"},
		{ah + "a,0,5,1\na,6,5,0\n", wh, "line 3: field start_tick: 6 leaves a hole, a is known to tick 5 only"},
		{ah + "a,0,5,1\na,4,5,0\n", wh, "line 3: field start_tick: 4 comes before tick 5"},
		{ah + "a,0,5,1\nb,0,1,1\na,5,5,0\n", wh, "line 4: field zone: a stood further up"},
		{ah + "a,0,0,1\n", wh, "field ticks: 0 is not between"},
		{ah + "a,0,99999999999,1\n", wh, "field ticks: 99999999999 is not between"},
		{ah + "a,0,5,2\n", wh, "field available: 2 is neither 0 nor 1"},
		{ah + "a,-1,5,1\n", wh, `field start_tick: "-1" is not a whole number`},
		{ah + ",0,5,1\n", wh, "field zone: missing"},
		{ah + "a,0,5,1\n", wh, "read w.csv: no rows"},
		{ah + "a,0,5,1\n", wh + "b,0,0,5\n", `field zone: "b" is not in a.csv`},
		{ah + "a,0,5,1\n", wh + "a,0,1,5\n", "the window ends at tick 6, a is known to tick 5 only"},
		{ah + "a,0,5,1\n", wh + "a,0,0,0\n", "a window of none"},
		{ah + "a,0,5,1\n", wh + "a,0,0,5\na,0,0,5\n", "line 3: field window: a has a window 0 further up"},
	} {
		_, err := ReadSingle(strings.NewReader(c.avail), "a.csv", strings.NewReader(c.windows), "w.csv")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q: %v, want %q", c.avail, c.windows, err, c.want)
		}
	}
	list, err := ReadSingle(strings.NewReader(ah+"a,0,400,1\n"), "a.csv", strings.NewReader(wh+"a,0,0,400\n"), "w.csv")
	must.Do(t, err)
	if _, err := SingleRuns(list); err == nil || !strings.Contains(err.Error(), "read w.csv: line 2: field ticks: window 0 of a has 400 ticks of 10 minutes, and a job has until hour 70: give it at least 420") {
		t.Errorf("a short window: %v", err)
	}
	// Spreadsheets add a byte-order mark and empty lines; neither changes the result.
	const mark = "\ufeff"
	spread, err := ReadSingle(strings.NewReader(mark+ah+"a,0,300,1\r\n\r\na,300,100,1\r\n\r\n"), "a.csv", strings.NewReader(mark+wh+"\na,0,0,400\n\n"), "w.csv")
	if err != nil || !reflect.DeepEqual(spread[0].Up, list[0].Up) {
		t.Errorf("from a spreadsheet: %v", err)
	}
	if _, err := ReadSingle(strings.NewReader(ah+"\n"), "a.csv", strings.NewReader(wh), "w.csv"); err == nil || !strings.Contains(err.Error(), "read a.csv: no rows") {
		t.Errorf("a header and lines of nothing: %v", err)
	}
}

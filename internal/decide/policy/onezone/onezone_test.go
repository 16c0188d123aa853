package onezone_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/tick"
	"scrimp/internal/test/lane"
)

func small(over time.Duration) onezone.Problem {
	return onezone.Problem{Deadline: 24 * time.Hour, Overhead: over, Grid: 10 * time.Minute, Spot: 1, OnDemand: 3, Whole: true}
}

// anyState draws a state of a run.
func anyState(r *rand.Rand, p onezone.Problem) onezone.State {
	until := time.Duration(1+r.IntN(int(p.Deadline/p.Grid))) * p.Grid
	s := onezone.State{
		Until: until, Left: max(time.Minute, until-time.Duration(r.IntN(600))*time.Minute),
		Market: onezone.Market{Up: r.IntN(2) == 0, Age: time.Duration(r.IntN(90)) * p.Grid, Odds: onezone.Odds{
			UpLog: 8 * (r.Float64() - .5), UpCount: 5 * r.Float64(), GapLog: 8 * (r.Float64() - .5), GapCount: 5 * r.Float64(),
			UpHours: 20 * r.Float64(), Hours: 20 + 20*r.Float64(),
		}},
	}
	s.Held = onezone.Held(r.IntN(3))
	if s.Held == onezone.Spot && !s.Market.Up {
		s.Held = onezone.None
	}
	if s.Held != onezone.None && r.IntN(2) == 0 && p.Overhead > p.Grid {
		s.Owed = p.Overhead - p.Grid
	}
	return s
}

func TestTables_NeverUseWhatTheGuardForbids(t *testing.T) {
	for _, over := range []time.Duration{0, 3 * time.Minute, 12 * time.Minute} {
		p := small(over)
		solver, r := onezone.New(p, onezone.Public), rand.New(rand.NewPCG(1, uint64(over)))
		guarded := 0
		for range lane.Pick(10_000, 60_000) {
			s := anyState(r, p)
			if s.Until-s.Left >= over+p.Grid {
				continue
			}
			guarded++
			got := solver.Decide(s)
			if got.Choice == onezone.OnDemand || got.Choice == onezone.Spot && s.Held == onezone.Spot && s.Owed == 0 {
				continue
			}
			t.Fatalf("%+v: %+v", s, got)
		}
		if guarded < lane.Pick(100, 500) {
			t.Fatalf("only %d states were under the guard", guarded)
		}
	}
}

func TestChoice_IsTheCheapestShown(t *testing.T) {
	p := small(12 * time.Minute)
	solver, r := onezone.New(p, onezone.Public), rand.New(rand.NewPCG(2, 0))
	seen := map[onezone.Held]int{}
	for range 20000 {
		s := anyState(r, p)
		got := solver.Decide(s)
		seen[got.Choice]++
		for k, usd := range got.USD {
			if usd < got.USD[got.Choice]-1e-9 || math.IsNaN(usd) {
				t.Fatalf("%+v: %v costs $%v, %v is chosen: %+v", s, onezone.Held(k), usd, got.Choice, got)
			}
		}
		if got.Lasts < 0 || got.Lasts > 1 || got.Hour < 0 || got.Hour > got.Lasts || math.IsInf(got.USD[got.Choice], 0) || got.Choice == onezone.Spot && !s.Market.Up {
			t.Fatalf("%+v: %+v", s, got)
		}
	}
	if len(seen) != 3 {
		t.Errorf("only %v were ever chosen", seen)
	}
}

func TestSlack_NeverRaisesTheExpectedCost(t *testing.T) {
	p := small(12 * time.Minute)
	solver, r := onezone.New(p, onezone.Public), rand.New(rand.NewPCG(3, 0))
	better := 0
	for range 20000 {
		s := anyState(r, p)
		if s.Until-s.Left < p.Overhead || s.Until+p.Grid > p.Deadline || s.Left < 2*time.Hour {
			continue
		}
		got := solver.Decide(s)
		s.Until += p.Grid
		more := solver.Decide(s)
		// 2 % tolerance: dollars are linear between grid points, which shows when little work is left.
		if more.USD[more.Choice] > got.USD[got.Choice]*1.02 {
			t.Fatalf("%+v: $%v, with a step less $%v", s, more.USD[more.Choice], got.USD[got.Choice])
		}
		if more.USD[more.Choice] < got.USD[got.Choice]-1e-3 {
			better++
		}
	}
	if better < 500 {
		t.Errorf("time was worth something in %d states only", better)
	}
}

var markets = flag.Int("markets", lane.Pick(200, 10_000), "how many generated markets the properties of the mean are held on")

// mean plays n generated markets and returns the mean dollars.
func mean(t *testing.T, runs int, job tick.Job) float64 {
	t.Helper()
	solver := onezone.New(onezone.Problem{Deadline: job.Deadline, Overhead: job.Overhead, Grid: job.Gap, Spot: job.Spot.Float(), OnDemand: job.OnDemand.Float(), Whole: true}, onezone.Public)
	var all tick.Score
	for seed := range runs {
		up := tick.Drawn(uint64(seed), 7, 400)
		all.Add(tick.Run{Job: job, Up: up[:min(len(up), job.Ticks())]}.Play(&player{s: solver, j: job}))
	}
	if all.Misses > 0 {
		t.Errorf("%d misses of %d", all.Misses, runs)
	}
	return all.Mean()
}

func TestSlack_NeverCostsMoreInTheMean(t *testing.T) {
	last := math.Inf(1)
	for _, hours := range []int{10, 11, 13, 18} {
		job := tick.Job{Work: 9 * time.Hour, Deadline: time.Duration(hours) * time.Hour, Overhead: 12 * time.Minute, Gap: 10 * time.Minute, Spot: perHour(1), OnDemand: perHour(3)}
		got := mean(t, *markets, job)
		t.Logf("%d h: $%.3f", hours, got)
		if got > last*1.005 {
			t.Errorf("%d h to the deadline: $%.3f, with less $%.3f", hours, got, last)
		}
		last = got
	}
}

func TestSpot_CheaperNeverCostsMoreInTheMean(t *testing.T) {
	last := 0.0
	for _, usd := range []float64{0.5, 1.5, 2.8} {
		job := tick.Job{Work: 9 * time.Hour, Deadline: 12 * time.Hour, Overhead: 12 * time.Minute, Gap: 10 * time.Minute, Spot: perHour(usd), OnDemand: perHour(3)}
		got := mean(t, *markets, job)
		t.Logf("spot at $%.2f: $%.3f", usd, got)
		if got < last*0.995 {
			t.Errorf("spot at $%v: $%.3f, at a lower price $%.3f", usd, got, last)
		}
		last = got
	}
	// On-demand only: 9 h 12 min, billed in whole ticks of 10 min.
	if onDemand := 56.0 / 6 * 3; last > onDemand*1.005 {
		t.Errorf("with spot at $2.80 a run costs $%.3f, on-demand $%.3f", last, onDemand)
	}
}

func perHour(usd float64) money.Rate {
	return money.Rate(math.Round(usd * 1e12))
}

// The bytes are the same on every processor. A change of the model changes them.
func TestTables_AreTheSameBytesForTheSameState(t *testing.T) {
	p := small(12 * time.Minute)
	sum := func(order int) string {
		solver, h := onezone.New(p, onezone.Public), fnv.New64a()
		verdicts := make([]onezone.Verdict, 300)
		for n := range verdicts {
			i := (n*order + 7) % len(verdicts)
			verdicts[i] = solver.Decide(anyState(rand.New(rand.NewPCG(4, uint64(i))), p))
		}
		fmt.Fprint(h, verdicts)
		return fmt.Sprintf("%x", h.Sum64())
	}
	if a, b := sum(1), sum(7); a != b || a != "ed02ea2ee2df2491" {
		t.Errorf("%s and, asked in another order, %s", a, b)
	}
}

// twin is the decision process without tables, grids or buckets: it tries every choice at every step to the end.
func twin(p onezone.Problem, until, left time.Duration, up bool, age time.Duration, held onezone.Held, owed time.Duration) float64 {
	if left <= 0 {
		return 0
	}
	if until <= 0 {
		return 0 // unreachable under the guard
	}
	shape := onezone.Public.Gap
	if up {
		shape = onezone.Public.Up
	}
	ends := shape.Ends(0, age, p.Grid)
	next := func(left time.Duration, h onezone.Held, owed time.Duration) float64 {
		if left <= 0 {
			return 0
		}
		lost, lostOwed := h, owed
		if h == onezone.Spot {
			lost, lostOwed = onezone.None, 0
		}
		stays := twin(p, until-p.Grid, left, up, age+p.Grid, h, owed)
		if up {
			return (1-ends)*stays + ends*twin(p, until-p.Grid, left, false, 0, lost, lostOwed)
		}
		return (1-ends)*stays + ends*twin(p, until-p.Grid, left, true, 0, h, owed)
	}
	run := func(h onezone.Held, price float64) float64 {
		o := owed
		if h != held {
			o = p.Overhead
		}
		served := min(o, p.Grid)
		return price*p.Grid.Hours() + next(left-p.Grid+served, h, o-served)
	}
	best := run(onezone.OnDemand, p.OnDemand)
	guard := until-left < p.Overhead+p.Grid
	if up && (!guard || held == onezone.Spot && owed == 0) {
		best = min(best, run(onezone.Spot, p.Spot))
	}
	if !guard {
		best = min(best, next(left, onezone.None, 0))
	}
	return best
}

func TestTables_MatchAnExhaustiveSearch(t *testing.T) {
	for _, over := range []time.Duration{0, 3 * time.Minute, 12 * time.Minute} {
		p := onezone.Problem{Deadline: 70 * time.Minute, Overhead: over, Grid: 10 * time.Minute, Spot: 1, OnDemand: 3, Whole: true}
		solver := onezone.New(p, onezone.Public)
		for _, up := range []bool{false, true} {
			for left := 5 * time.Minute; left <= 55*time.Minute; left += 5 * time.Minute {
				for until := p.Grid * 2; until <= 60*time.Minute; until += p.Grid {
					if until-left < over {
						continue // no choice is in time
					}
					// Ages up to five steps have their own buckets.
					got := solver.Decide(onezone.State{Until: until, Left: left, Market: onezone.Market{Up: up}})
					want := twin(p, until, left, up, 0, onezone.None, 0)
					near := 0.002
					if until-left > 40*time.Minute {
						near = 0.04 // between grid points that lie further apart
					}
					if math.Abs(got.USD[got.Choice]-want) > near*want {
						t.Errorf("overhead %v, %v left of %v, spot %v: $%.5f, trying every choice finds $%.5f", over, left, until, up, got.USD[got.Choice], want)
					}
				}
			}
		}
	}
}

func TestWatch_DoesNotDependOnTheNumberOfPolls(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var seldom, often onezone.Watch
	up := tick.Drawn(5, 7, 300)
	changes := 0
	for i, u := range up {
		at := began.Add(time.Duration(i) * 10 * time.Minute)
		if i == 0 || u != up[i-1] {
			seldom = seldom.See(at, u)
			changes++
		}
		for j := range 3 {
			often = often.See(at.Add(time.Duration(j)*time.Minute), u)
		}
		if a, b := seldom.At(at), often.At(at); a != b {
			t.Fatalf("after %d looks: %+v and %+v", i, a, b)
		}
	}
	if changes < 20 || seldom.See(began, !seldom.Up) != seldom {
		t.Errorf("%d changes; a look from the past changes the watch", changes)
	}
}

func TestShelf_SharesTablesOfLikeJobs(t *testing.T) {
	shelf := onezone.NewShelf(onezone.Public, 2)
	a := onezone.For(52*time.Hour, 12*time.Minute, 10*time.Minute, 0.9731, 3.06)
	b := onezone.For(51*time.Hour, 12*time.Minute-time.Second, 10*time.Minute, 0.9731, 3.06)
	if a != b || shelf.Solver(a) != shelf.Solver(b) {
		t.Errorf("%+v and %+v", a, b)
	}
	for _, c := range []struct{ deadline, overhead, look time.Duration }{
		{5 * time.Minute, time.Second, 5 * time.Second}, {70 * time.Hour, 12 * time.Minute, 195 * time.Second},
		{21 * 24 * time.Hour, time.Hour, time.Minute}, {time.Hour, 0, 0}, {time.Second, time.Hour, time.Minute},
	} {
		p := onezone.For(c.deadline, c.overhead, c.look, 1, 3)
		steps := p.Deadline / p.Grid
		if p.Deadline < c.deadline || p.Overhead < c.overhead || p.Grid < c.look || steps > 600 || p.Overhead > 5*p.Grid+p.Grid {
			t.Errorf("%+v: %+v", c, p)
		}
	}
	// With three problems on a shelf for two, the least recently used one is evicted, and its rebuilt tables decide
	// the same.
	short := onezone.For(time.Hour, 0, time.Minute, 1, 3)
	first, second := shelf.Solver(a), shelf.Solver(short)
	if shelf.Solver(a) != first || shelf.Solver(short) != second || shelf.Solver(a) != first {
		t.Error("the shelf forgets what it has room for")
	}
	shelf.Solver(onezone.For(2*time.Hour, 0, time.Minute, 1, 3))
	if shelf.Solver(a) != first {
		t.Error("the shelf forgets what was asked for last")
	}
	s := onezone.State{Until: 30 * time.Minute, Left: 20 * time.Minute}
	if again := shelf.Solver(short); again == second || again.Decide(s) != second.Decide(s) {
		t.Error("the shelf keeps more than it has room for, or a new solver decides otherwise")
	}
}

// The examples of docs/formulas.md.
func TestHorizon_MatchesTheExamples(t *testing.T) {
	prior := onezone.Public
	if got := prior.Up.Ends(0, 0, 10*time.Minute); math.Abs(got-0.2907) > 5e-5 {
		t.Errorf("spot that is just seen ends within 10 min with %.4f", got)
	}
	if got := prior.Up.Ends(0, 390*time.Minute, 10*time.Minute); math.Abs(got-0.0452) > 5e-5 {
		t.Errorf("spot seen for 6.5 h ends within 10 min with %.4f", got)
	}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var w onezone.Watch
	w = w.See(began, true).See(began.Add(20*time.Minute), false)
	up, gap := prior.Offsets(w.Odds)
	if math.Abs(up-0.0312) > 5e-4 || math.Abs(gap-0.0410) > 5e-4 {
		t.Errorf("after 20 min of spot and nothing else the offsets are %.4f and %.4f", up, gap)
	}
}

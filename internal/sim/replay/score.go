package replay

import (
	"context"
	"runtime"
	"sync"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/tick"
	"scrimp/internal/sim/tick/multizone"
)

// Optimum names the omniscient optimum in tables. It knows the future, so no policy can cost less.
const Optimum = "optimum"

// Names lists the rows of a benchmark, in table order.
var Names = []string{string(policy.OnDemand), string(policy.Greedy), string(policy.UniformProgress),
	string(policy.UniformProgress2), Optimum, string(policy.Default)}

// Score is a row of a benchmark's table. Dollars are statistics: means of exact sums.
type Score struct {
	Name        string   `json:"name"`
	Form        string   `json:"form,omitempty"` // A or B; only with several zones
	MeanUSD     float64  `json:"mean_usd"`
	Misses      int      `json:"misses"`
	Runs        int      `json:"runs"`
	OverOptimum *float64 `json:"over_optimum,omitempty"` // a fraction; absent without the optimum
	// InterruptionsPerRun, LaunchesPerRun and MovesPerRun are means.
	InterruptionsPerRun float64 `json:"interruptions_per_run"`
	LaunchesPerRun      float64 `json:"launches_per_run"`
	MovesPerRun         float64 `json:"moves_per_run"`   // machines rented after the first
	CarriesPerRun       float64 `json:"carries_per_run"` // of Moves, those to another region
	Decisions           int     `json:"decisions,omitempty"`
	Seconds             float64 `json:"seconds,omitempty"` // approximate time of one core
	Parts               []Part  `json:"parts"`
}

// Part is the mean over the runs of one kind.
type Part struct {
	WorkHours     float64 `json:"work_h"`
	DeadlineHours float64 `json:"deadline_h"`
	OverheadHours float64 `json:"overhead_h"`
	MeanUSD       float64 `json:"mean_usd"`
	Runs          int     `json:"runs"`
}

// tally is the result of one run.
type tally struct {
	cost                     money.Amount
	missed                   bool
	lost, launched, moved, n int
	work, deadline, overhead time.Duration
	took                     time.Duration
}

// Deadline plays every run under every rule and returns a row for each name. It calls tell now and then, from one
// goroutine at a time, and times the work with now.
func Deadline(ctx context.Context, runs []tick.Run, names []string, now func() time.Time,
	tell func(name string, done, of int)) ([]Score, error) {
	var scores []Score
	for _, name := range names {
		lines, err := each(ctx, len(runs), func(mind *plan.Planner, i int) tally {
			r, began := runs[i], now()
			l := tally{work: r.Job.Work, deadline: r.Job.Deadline, overhead: r.Job.Overhead}
			if name == Optimum {
				cost, ok := r.Optimum()
				l.cost, l.missed = cost, !ok
			} else {
				out := Single(r, mind, policy.Rule(name), false)
				l.cost, l.missed, l.lost, l.launched, l.n = out.Cost, out.Missed, out.Interruptions, out.Launches, out.Decisions
			}
			l.took = now().Sub(began)
			return l
		}, func(done int) { tell(name, done, len(runs)) })
		if err != nil {
			return nil, err
		}
		scores = append(scores, score(name, lines))
	}
	over(scores)
	return scores, nil
}

// ZoneRow is a form of the benchmark with several zones, and its runs.
type ZoneRow struct {
	Form string // A: a policy sees every zone in every tick; B: the held zone and one more
	Runs []multizone.Run
}

// SeveralZones plays every run of every form under every rule. The forms have the same runs; optima holds their optima,
// or nil unless a row asks for Optimum.
func SeveralZones(ctx context.Context, forms []ZoneRow, optima []money.Amount, names []string, now func() time.Time,
	tell func(name string, done, of int)) ([]Score, error) {
	var scores []Score
	for _, name := range names {
		for _, form := range forms {
			lines, err := each(ctx, len(form.Runs), func(mind *plan.Planner, i int) tally {
				r, began := &form.Runs[i], now()
				l := tally{work: r.Job.Work, deadline: r.Job.Deadline, overhead: r.Job.Restart}
				if name == Optimum {
					l.cost = optima[i]
				} else {
					out := Zones(r, mind, ruleOf(name), false)
					l.cost, l.missed, l.lost, l.launched, l.moved, l.n = out.Cost, out.Missed, out.Interruptions, out.Launches,
						out.Carries, out.Decisions
				}
				l.took = now().Sub(began)
				return l
			}, func(done int) { tell(name+" "+form.Form, done, len(form.Runs)) })
			if err != nil {
				return nil, err
			}
			s := score(name, lines)
			s.Form = form.Form
			scores = append(scores, s)
		}
	}
	over(scores)
	return scores, nil
}

// each calls work with every index on all cores, in any order, and returns the results in index order.
func each(ctx context.Context, n int, work func(*plan.Planner, int) tally, tell func(done int)) ([]tally, error) {
	lines := make([]tally, n)
	var mu sync.Mutex
	next, done := 0, 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= n || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			mind := plan.NewPlanner()
			for i, ok := take(); ok; i, ok = take() {
				lines[i] = work(mind, i)
				mu.Lock()
				done++
				tell(done)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return lines, context.Cause(ctx)
}

func score(name string, lines []tally) Score {
	s := Score{Name: name, Runs: len(lines)}
	var total money.Amount
	type kind [3]time.Duration
	sums := map[kind]*struct {
		cost money.Amount
		n    int
	}{}
	var order []kind
	for _, l := range lines {
		total = total.Add(l.cost)
		if l.missed {
			s.Misses++
		}
		s.InterruptionsPerRun += float64(l.lost)
		s.LaunchesPerRun += float64(l.launched)
		s.MovesPerRun += float64(max(0, l.launched-1))
		s.CarriesPerRun += float64(l.moved)
		s.Decisions += l.n
		s.Seconds += l.took.Seconds()
		k := kind{l.work, l.deadline, l.overhead}
		if sums[k] == nil {
			order = append(order, k)
			sums[k] = &struct {
				cost money.Amount
				n    int
			}{}
		}
		sums[k].cost = sums[k].cost.Add(l.cost)
		sums[k].n++
	}
	if len(lines) == 0 {
		return s
	}
	n := float64(len(lines))
	s.MeanUSD = total.Float() / n
	s.InterruptionsPerRun /= n
	s.LaunchesPerRun /= n
	s.MovesPerRun /= n
	s.CarriesPerRun /= n
	for _, k := range order {
		sum := sums[k]
		s.Parts = append(s.Parts, Part{WorkHours: k[0].Hours(), DeadlineHours: k[1].Hours(), OverheadHours: k[2].Hours(),
			MeanUSD: sum.cost.Float() / float64(sum.n), Runs: sum.n})
	}
	return s
}

// over sets how far each row is above the optimum of its form.
func over(scores []Score) {
	for i := range scores {
		for _, best := range scores {
			if best.Name == Optimum && best.Form == scores[i].Form && best.MeanUSD > 0 {
				share := scores[i].MeanUSD/best.MeanUSD - 1
				scores[i].OverOptimum = &share
			}
		}
	}
}

package sim

import (
	"math/rand/v2"
	"regexp"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/retrain"
	"scrimp/internal/work/schedule"
)

// runName matches the part of a stage's ID that names its run.
var runName = regexp.MustCompile(`\.r[0-9]+\.`)

// stageDrawn returns the ID under which a stage's program was drawn: all runs of a schedule share it.
func stageDrawn(id string) string { return runName.ReplaceAllString(id, ".") }

// scheduled turns a pipeline into a schedule.
func scheduled(b core.GroupOpened, rng *rand.Rand) core.GroupOpened {
	run := b.Terms
	b.Terms.Kind, b.Terms.Run, b.Terms.Pipeline, b.Terms.Stages = groups.Schedule, &run, nil, nil
	b.Terms.Schedule = &schedule.Spec{Cron: []string{"0 */2 * * *", "*/20 * * * *", "30 2,14 * * *"}[rng.IntN(3)],
		Zone: []string{"", "Europe/Berlin"}[rng.IntN(2)], NoCatchUp: rng.IntN(2) == 0, Runs: rng.IntN(6)}
	b.Terms.GPUHours, b.Terms.WallClock = 0, 0 // those of each run
	b.Terms.Budget = usd(run.Budget.Float() * (0.9 + 3*rng.Float64()))
	return b
}

// conditional gives some schedules conditions. It has its own random source.
func (w *World) conditional(y *schedule.Spec) {
	rng := rand.New(rand.NewPCG(w.seed, 0xc0d1))
	if rng.IntN(2) == 0 {
		y.When.Price = &retrain.Price{Most: 1000, By: time.Duration(1+rng.IntN(180)) * time.Minute}
	}
	if rng.IntN(2) == 0 {
		y.When.Data = &retrain.Data{Path: "/new", AtLeast: 1 + rng.IntN(3)}
	}
}

// weighs answers a planner that asks whether to start a run, with random prices and new objects. A wrong answer makes
// the run wait longer than its schedule allows.
func (w *World) weighs(s *groups.Snapshot, v groups.Move) groups.Move {
	rng := rand.New(rand.NewPCG(w.seed^0xc0d2, s.Base))
	f := retrain.Facts{Now: s.Now, Since: s.DueSince(v.Run), Data: &retrain.Seen{New: rng.IntN(5)}, Offer: "spot"}
	if rng.IntN(5) > 0 {
		f.Price = new(money.Rate(500 + rng.IntN(1500)))
	}
	v = v.Under(s, s.Schedule.When.Decide(f))
	if v.Do == groups.Await && rng.IntN(20) == 0 {
		v.Run.Next = v.Run.Next.Add(s.Schedule.When.Price.By)
	}
	return v
}

// waits verifies that a run waits for a price no longer than its schedule allows.
func (t *twin) waits(g *state.Group) {
	w, y := t.w, g.Schedule
	if y.Since.IsZero() {
		return
	}
	w.saw("a run waits for a price")
	price := g.Terms.Schedule.When.Price
	if price == nil || y.Since.After(w.m.State().Now()) || y.Due.After(y.Since.Add(price.By)) || len(y.Waits) == 0 {
		w.breaks("schedule: a run waits since %s until %s, with the conditions %+v", y.Since, y.Due, g.Terms.Schedule.When)
	}
}

// schedules verifies that runs start when they are due, one at a time and no more than allowed, and that together they
// cost no more than their schedule's budget.
func (t *twin) schedules(b core.Proposed, out core.Outcome) {
	w := t.w
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.RunSettled:
			g := w.group(f.Group)
			y := g.Schedule
			t.waits(g)
			if len(y.Runs) == 0 || len(b.Moves) == 0 || b.Moves[0].Run == nil || b.Moves[0].Run.Due.IsZero() {
				continue
			}
			last := y.Runs[len(y.Runs)-1]
			if f.Run == "" {
				w.saw("a run is skipped")
			} else {
				w.saw("a run begins")
			}
			if last.Due.After(w.m.State().Now()) || !y.Due.After(last.Due) {
				w.breaks("schedule: a run was due at %s, it is %s, and the next is due at %s", last.Due, w.m.State().Now(), y.Due)
			}
			if n := len(y.Runs); n > 1 && !last.Due.After(y.Runs[n-2].Due) {
				w.breaks("schedule: runs were due at %s and then at %s", y.Runs[n-2].Due, last.Due)
			}
			if most := g.Terms.Schedule.Runs; most > 0 && y.Begun > most {
				w.breaks("schedule: %d runs have begun, at most %d may", y.Begun, most)
			}
			t.runs(g)
		case state.GroupFinished:
			if g := w.group(f.Group); g.Schedule != nil {
				w.saw("a schedule is over")
				if t.runs(g) > 0 {
					w.breaks("schedule: it is over, and a run of it is not")
				}
			}
		}
	}
}

// runs returns the number of open runs of a schedule.
func (t *twin) runs(g *state.Group) (open int) {
	w := t.w
	claims := money.Amount{}
	for _, run := range w.groups() {
		if run.Terms.Parent != g.Name {
			continue
		}
		spent := w.m.GroupSpent(run, w.m.State().Now())
		if run.Phase != state.GroupOver {
			open++
			if spent.Cmp(run.Worst) < 0 {
				spent = run.Worst
			}
		}
		if spent.Cmp(run.Worst) > 0 && !w.endsInTime() { // its machines ended late
			spent = run.Worst
		}
		claims = claims.Add(spent)
	}
	if open > 1 {
		w.breaks("schedule: %d runs are open at once", open)
	}
	if claims.Cmp(g.Terms.Budget) > 0 {
		w.breaks("schedule: its runs may cost %v, and it has %v", claims, g.Terms.Budget)
	}
	return open
}

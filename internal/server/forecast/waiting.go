package forecast

import (
	"context"
	"encoding/json"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim"
)

const (
	// mostWaiting bounds the waiting jobs with an estimate to the most urgent ones, as the outlooks of budgets do.
	mostWaiting = 500
	// waitingRound bounds the simulations of waiting jobs in a round, so that running jobs are not neglected.
	waitingRound = 20
)

// waiting is a job that waits for its turn.
type waiting struct {
	asked bool        // its run was simulated
	cost  *[3]float64 // by simulation of the run from now; nil: unknown
	at    time.Time   // market time of the simulation
	// begin is when the simulated runs get their first machine, and turn when the queue lets the job have one, in market
	// time from their start. begin is nil if the job needs a reserved machine that others wait for as well.
	begin, turn *[3]time.Duration
	turnAt      time.Time // market time from which turn counts
}

// Estimate returns what a waiting job is expected to cost, and when it starts; nil if its cost is unknown.
func (f *Forecaster) Estimate(job string) *client.JobEstimate {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.waits[job]
	if w == nil || w.cost == nil {
		return nil
	}
	e := &client.JobEstimate{Cost: *w.cost}
	if w.begin == nil || w.turn == nil {
		return e
	}
	now := f.Control.Now()
	e.StartS = &[3]float64{}
	for i := range e.StartS {
		e.StartS[i] = max(0, (w.begin[i] - max(0, now.Sub(w.at))).Seconds(),
			(w.turn[i] - max(0, now.Sub(w.turnAt))).Seconds())
	}
	return e
}

// estimate simulates waiting jobs: those without an estimate first, by urgency, and then those with the oldest one.
// Jobs with equal terms share a simulation.
func (f *Forecaster) estimate(ctx context.Context, mind **plan.Planner) {
	order := f.queue()
	alone := len(order) == 1
	played := map[string]*waiting{}
	for n := 0; n < waitingRound && len(order) > 0 && ctx.Err() == nil; {
		id := f.oldest(&order)
		key, q, known := f.waitingQuestion(id, played)
		if key == "" {
			continue
		}
		w := played[key]
		if w == nil {
			w = &waiting{at: f.Control.Now()}
			played[key] = w
			if known {
				n++
				w.learn(&q, f.simulate(ctx, mind, id, q), alone)
			}
		}
		f.keep(id, *w)
	}
}

// waitingQuestion returns the scenario of a waiting job, and what jobs have in common that share its simulation; "" if
// the job waits no more. It makes no scenario for a key that has been played.
func (f *Forecaster) waitingQuestion(id string, played map[string]*waiting) (key string, q sim.Scenario, known bool) {
	f.Control.ReadUncommitted(func(m *core.Machine) {
		j, ok := m.Job(id)
		if !ok || j.State() != core.Queued {
			return
		}
		if key = keyOf(j); played[key] == nil {
			q, known = f.fresh(m, j)
		}
	})
	return key, q, known
}

// learn stores the result of a simulation. Nobody simulates the others that wait for a reserved machine, so it tells
// only a job that waits alone when it starts there.
func (w *waiting) learn(q *sim.Scenario, played sim.Forecast, alone bool) {
	if played.Halted || played.Endless >= 0.1 || played.On == "" {
		return
	}
	w.cost, w.at = &played.Cost, q.Now
	for i := range q.Offers {
		if q.Offers[i].ID == played.On && q.Offers[i].Reserved.Count > 0 && !alone {
			return
		}
	}
	w.begin = &played.Begin
}

// keep stores the simulation of a job that still waits.
func (f *Forecaster) keep(job string, w waiting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.waits[job]; old != nil {
		w.asked, w.turn, w.turnAt = true, old.turn, old.turnAt
		f.waits[job] = &w
	}
}

// queue updates the turns of the waiting jobs, drops those that wait no more, and returns the others by urgency.
func (f *Forecaster) queue() (order []string) {
	var courses []budget.Course
	var limits []budget.Limit
	places, now := 0, f.Control.Now()
	f.Control.ReadUncommitted(func(m *core.Machine) {
		if m.Now().After(now) {
			now = m.Now()
		}
		if rules := m.State().Rules(); rules != nil {
			limits = rules.Limits
		}
		courses, places, _ = m.Courses(now, mostWaiting)
	})
	turns := budget.Begins(limits, courses, places, now)
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := map[string]*waiting{}
	for _, c := range courses {
		if c.Runs {
			continue
		}
		w := f.waits[c.ID]
		if w == nil {
			w = &waiting{}
		}
		w.turn, w.turnAt = nil, now
		if v, ok := turns[c.ID]; ok {
			w.turn = &v
		}
		kept[c.ID], order = w, append(order, c.ID)
	}
	f.waits = kept
	return order
}

// oldest takes the next job to simulate from the list.
func (f *Forecaster) oldest(order *[]string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	best := 0
	for i, id := range *order {
		w, b := f.waits[id], f.waits[(*order)[best]]
		if w == nil || !w.asked {
			best = i
			break
		}
		if b != nil && w.at.Before(b.at) {
			best = i
		}
	}
	id := (*order)[best]
	*order = append((*order)[:best:best], (*order)[best+1:]...)
	return id
}

// keyOf is equal for jobs whose simulations are equal.
func keyOf(j *core.Job) string {
	t := *j.Terms()
	t.Name, t.Group, t.Index, t.Notify = "", "", 0, false
	text, err := json.Marshal(struct {
		Terms core.Terms
		Saved int64
		Pace  float64
		Spent money.Amount
	}{t, j.SavedStep(), j.StepRate(), j.Spent(j.Submitted())})
	if err != nil {
		return j.ID()
	}
	return string(text)
}

// fresh builds the scenario of a waiting job's run; known is false if its work is unknown. The caller holds the machine
// for reading.
func (f *Forecaster) fresh(m *core.Machine, j *core.Job) (q sim.Scenario, known bool) {
	left, _, known := j.Left(1)
	if !known {
		return q, false
	}
	q = f.question(m, j)
	q.Done = j.SavedStep()
	if q.Terms.Steps == 0 {
		q.Terms.Steps, q.Done = sim.StepsOf(left), 0
	}
	if q.Pace <= 0 && left > 0 {
		q.Pace, q.PaceSpread = float64(q.Terms.Steps-q.Done)/left.Hours(), 0 // as stated
	}
	return q, q.Pace > 0
}

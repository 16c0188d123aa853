// Package forecast says how likely running jobs are done in time, by playing them forward.
package forecast

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/engine"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market"
	"scrimp/internal/sim"
	"scrimp/internal/wire/api"
)

// NotConfigured is the state of an engine that is named no more while machines of it may cost something.
const NotConfigured = "not_configured"

// NotAsked is the state of an engine that a server, which has just begun, has not polled yet.
const NotAsked = "not_asked"

// Rules is how the core of a server decides that has these engines: who plays a job
// forward plays it by these.
func Rules(speed float64, list []api.Engine) core.Config {
	span := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	var engines []engine.Engine
	for _, e := range list {
		if e.State == NotConfigured {
			continue
		}
		engines = append(engines, engine.Engine{Name: e.Name, Seats: e.Seats, Timing: engine.Timing{
			Detect: span(e.Timing.Detect), Boot: span(e.Timing.Boot), Consistency: span(e.Timing.Consistency),
			GrantWait: span(e.Timing.GrantWait), // what a machine does after the job is not played
		}})
	}
	return control.CoreConfig(engine.Clock{Speed: speed}, engines)
}

// Forecaster knows how likely running jobs are done in time.
type Forecaster struct {
	Control *control.Control
	Errors  *slog.Logger

	mu   sync.Mutex
	odds map[string]float64 // by job
}

// InTime is how likely the job meets its deadline; nil where that is not known.
func (f *Forecaster) InTime(job string) *float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if odds, ok := f.odds[job]; ok {
		return &odds
	}
	return nil
}

// Forget drops what was said of a job, which has other terms now.
func (f *Forecaster) Forget(job string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.odds, job)
}

// learn keeps what was played of a job; what took too long says nothing.
func (f *Forecaster) learn(job string, played sim.Forecast) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.odds, job); played.Halted {
		return
	}
	if f.odds == nil {
		f.odds = map[string]float64{}
	}
	f.odds[job] = played.InTime
}

const (
	// forecastEvery is how long the odds of a job stand at least, on the wall.
	forecastEvery = 3 * time.Second
	// forecastShare is how much of one processor the forecasts take at most, all
	// together: agents and people are waited for, odds are not.
	forecastShare = 0.2
	// forecastLimit is how long one job is played at most. One that takes longer has no odds.
	forecastLimit = 2 * time.Second
)

// Run plays the working jobs forward through the core, one after the other,
// beside the core's own work, until ctx ends.
func (f *Forecaster) Run(ctx context.Context) {
	mind := plan.NewPlanner()
	for last := ""; ctx.Err() == nil; {
		id, q, more := f.foretold(last)
		last = id
		if id == "" {
			_ = wait.For(ctx, forecastEvery)
			continue
		}
		began := time.Now()
		q.Planner, q.Halt = mind, func() bool { return ctx.Err() != nil || time.Since(began) > forecastLimit }
		var told sim.Forecast
		if err := isolate.Call(func() { told = sim.Ask(q) }); err != nil { // this job has no odds, and others have theirs
			f.Errors.Error("the odds of a job are not known", "job", id, "error", err, isolate.Stack(err))
			mind, told = plan.NewPlanner(), sim.Forecast{Halted: true}
		}
		f.learn(id, told)
		rest := time.Duration(float64(time.Since(began)) * (1/forecastShare - 1))
		if !more { // a round is over
			last, rest = "", max(rest, forecastEvery)
		}
		_ = wait.For(ctx, rest)
	}
}

// foretold returns the next job after last, by name, whose odds can be played;
// "" where there is none. more says that another follows it.
func (f *Forecaster) foretold(last string) (id string, q sim.Scenario, more bool) {
	f.Control.ReadUncommitted(func(m *core.Machine) {
		for _, a := range m.Live() { // by name
			j, _ := m.Job(a.Job())
			if _, _, known := j.Left(1); !known { // it was, by what its program said before
				f.Forget(j.ID())
				continue
			}
			if a != j.Attempt() || a.Task() != core.TaskRunning || j.Terms().Deadline.IsZero() || j.StepRate() <= 0 ||
				j.ID() <= last {
				continue
			}
			if id != "" {
				more = true
				return
			}
			id, q = j.ID(), f.question(m, j)
		}
	})
	return id, q, more
}

// question asks how a job goes on. The caller reads the machine.
func (f *Forecaster) question(m *core.Machine, j *core.Job) sim.Scenario {
	q := sim.Scenario{
		Terms: *j.Terms(), Now: f.Control.Now(), Done: j.Step(), Pace: j.StepRate(),
		PaceSpread: j.Pace().MeanSpread(), Restart: max(j.Restart(), time.Second),
		Save:   max(j.SaveCost(), time.Second),
		Config: f.Control.Rules(), Spent: j.Spent(f.Control.Now()), Hazards: map[market.OfferID]policy.Hazard{}, Runs: 20,
		Speed: f.Control.Clock().Speed,
	}
	q.Terms.Steps = j.Total()
	q.Opens = map[market.OfferID]time.Time{}
	held := m.SpotHeld(q.Now)
	for o, l := range m.Sale() {
		l.Hazard.Served += held[o.ID]
		if at, known := opensFor(m, j, &o, q.Now); known {
			q.Opens[o.ID] = at
		}
		q.Offers, q.Quotes = append(q.Offers, o), append(q.Quotes, l.Quote)
		q.Hazards[o.ID] = l.Hazard
	}
	return q
}

// opensFor is when j gets its machines of a reserved offer that is all in use; those that it has itself are free for
// it.
func opensFor(m *core.Machine, j *core.Job, o *market.Offer, now time.Time) (at time.Time, known bool) {
	used, frees := m.Frees(o, now)
	if used == 0 || used < o.Reserved.Count {
		return at, false // its quote says whether it is to be had
	}
	own := 0
	for _, a := range j.Open() {
		if a.Offer() == o.ID && a.Live() {
			own += a.Nodes()
		}
	}
	return Opens(own, j.Terms().Fewest(), now, frees)
}

// Opens is when a job that begins on so many machines gets them of a reserved offer of which so many are free now,
// and the others are left at times that are known in part; false: nobody knows.
func Opens(free, nodes int, now time.Time, frees []time.Time) (at time.Time, known bool) {
	switch short := nodes - free; {
	case short <= 0:
		return now, true
	case short <= len(frees):
		return frees[short-1], true
	}
	return time.Time{}, false
}

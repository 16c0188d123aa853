// Package forecast estimates what running and waiting jobs still cost, when they start and finish, and the probability
// that running ones meet their deadlines, by simulation.
package forecast

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/engine"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/lib/threadtime"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market"
	"scrimp/internal/sim"
	"scrimp/internal/wire/api"
)

// NotConfigured is the state of an engine that is no longer configured but whose machines may still cost money.
const NotConfigured = "not_configured"

// NotAsked is the state of an engine that a starting server has not polled yet.
const NotAsked = "not_asked"

// Rules returns the core configuration of a server with these engines. A simulation of a job uses it to decide as
// the server does.
func Rules(speed float64, list []api.Engine) core.Config {
	span := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	var engines []engine.Engine
	for _, e := range list {
		if e.State == NotConfigured {
			continue
		}
		engines = append(engines, engine.Engine{Name: e.Name, Seats: e.Seats, Timing: engine.Timing{
			Detect: span(e.Timing.Detect), Boot: span(e.Timing.Boot), Consistency: span(e.Timing.Consistency),
			// A simulation ends with the job, so that it needs neither idle machines nor polls, sweeps and bills.
			GrantWait: span(e.Timing.GrantWait),
		}})
	}
	return control.CoreConfig(engine.Clock{Speed: speed}, engines)
}

// Forecaster keeps the forecasts of running and waiting jobs.
type Forecaster struct {
	Control *control.Control
	Errors  *slog.Logger

	mu    sync.Mutex
	told  map[string]told     // running jobs
	waits map[string]*waiting // waiting jobs
}

// told is the forecast of a job.
type told struct {
	inTime *float64 // nil: it has no deadline
	rest   *client.JobOutlook
	median Median
	at     time.Time // market time
}

// Outlook returns what the job still takes; nil if unknown. The span until it finishes shrinks with time.
func (f *Forecaster) Outlook(job string) *client.JobOutlook {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.told[job]
	if t.rest == nil {
		return nil
	}
	rest, gone := *t.rest, f.Control.Now().Sub(t.at).Seconds()
	for i := range rest.FinishS {
		rest.FinishS[i] = max(0, rest.FinishS[i]-gone)
	}
	return &rest
}

// InTime returns the probability that the job meets its deadline; nil if unknown.
func (f *Forecaster) InTime(job string) *float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told[job].inTime
}

// Median is what most of a job's simulated runs do. Times are market time.
type Median struct {
	At         time.Time  // when the runs began; it differs for each forecast
	Finish     time.Time  // median; zero if most runs do not end
	OverBudget bool       // a budget of the job ends most runs
	Terms      core.Terms // of the job at that time
}

// Median returns the newest forecast of a job.
func (f *Forecaster) Median(job string) (m Median, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.told[job]
	return t.median, ok
}

// medianOf returns the median of the runs of q.
func medianOf(q *sim.Scenario, played *sim.Forecast) Median {
	m := Median{At: q.Now, OverBudget: played.OverBudget > 0.5, Terms: q.Terms}
	if played.Endless <= 0.5 {
		m.Finish = q.Now.Add(played.Finish[1])
	}
	return m
}

// Forget drops the forecast of a job whose terms have changed.
func (f *Forecaster) Forget(job string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.told, job)
	delete(f.waits, job)
}

// learn stores the result of the simulation of q; one that was halted for its duration has none.
func (f *Forecaster) learn(job string, q sim.Scenario, played sim.Forecast) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.told, job); played.Halted {
		return
	}
	if f.told == nil {
		f.told = map[string]told{}
	}
	t := told{at: q.Now, median: medianOf(&q, &played)}
	if !q.Terms.Deadline.IsZero() {
		t.inTime = &played.InTime
	}
	if played.Endless < 0.1 { // otherwise the cost until the cut-off is not the cost of the work
		t.rest = &client.JobOutlook{Cost: played.Cost}
		for i, span := range played.Finish {
			t.rest.FinishS[i] = span.Seconds()
		}
	}
	f.told[job] = t
}

const (
	// forecastEvery is the lowest interval, in wall time, between two forecasts of a job.
	forecastEvery = 3 * time.Second
	// forecastShare bounds the share of one processor that all forecasts use together: agents and users must not
	// wait for them.
	forecastShare = 0.05
	// forecastLimit bounds the simulation of one job. A job that takes longer has no forecast.
	forecastLimit = 2 * time.Second
)

// Run simulates the running jobs one after the other, and then waiting ones, beside the core's own work, until ctx
// ends.
func (f *Forecaster) Run(ctx context.Context) {
	mind := plan.NewPlanner()
	for ctx.Err() == nil {
		for id, q, more := f.nextForecast(""); id != "" && ctx.Err() == nil; id, q, more = f.nextForecast(id) {
			f.learn(id, q, f.simulate(ctx, &mind, id, q))
			if !more {
				break
			}
		}
		f.estimate(ctx, &mind)
		_ = wait.For(ctx, forecastEvery)
	}
}

// simulate plays a scenario of a job, and then rests, so that simulations take their share of a processor. A scenario
// that makes the planner panic counts as halted, and the others get a new planner.
func (f *Forecaster) simulate(ctx context.Context, mind **plan.Planner, job string,
	q sim.Scenario) (played sim.Forecast) {
	began := time.Now()
	q.Planner, q.Halt = *mind, func() bool { return ctx.Err() != nil || time.Since(began) > forecastLimit }
	var err error
	cost := threadtime.Of(func() { err = isolate.Call(func() { played = sim.Ask(q) }) })
	if err != nil {
		f.Errors.Error("cannot forecast a job", "job", job, "error", err, isolate.Stack(err))
		*mind, played = plan.NewPlanner(), sim.Forecast{Halted: true}
	}
	_ = wait.For(ctx, time.Duration(float64(cost)*(1/forecastShare-1)))
	return played
}

// nextForecast returns the next job after last, by name, that can be simulated; "" if there is none. more reports
// whether another follows it.
func (f *Forecaster) nextForecast(last string) (id string, q sim.Scenario, more bool) {
	f.Control.ReadUncommitted(func(m *core.Machine) {
		for _, a := range m.Live() { // in order of name
			j, _ := m.Job(a.Job())
			if _, _, known := j.Left(1); !known { // it was known, from earlier reports of the program
				f.Forget(j.ID())
				continue
			}
			if a != j.Attempt() || a.Task() != core.TaskRunning || j.StepRate() <= 0 || j.ID() <= last {
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

// question builds the scenario of a job's remaining run. The caller holds the machine for reading.
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
		if at, known := machinesFreeAt(m, j, &o, q.Now); known {
			q.Opens[o.ID] = at
		}
		q.Offers, q.Quotes = append(q.Offers, o), append(q.Quotes, l.Quote)
		q.Hazards[o.ID] = l.Hazard
	}
	return q
}

// machinesFreeAt returns when j gets its machines of a reserved offer that is fully in use. Machines that j itself has
// count as free.
func machinesFreeAt(m *core.Machine, j *core.Job, o *market.Offer, now time.Time) (at time.Time, known bool) {
	used, frees := m.Frees(o, now)
	if used == 0 || used < o.Reserved.Count {
		return at, false // its quote says whether it is available
	}
	own := 0
	for _, a := range j.Open() {
		if a.Offer() == o.ID && a.Live() {
			own += a.Nodes()
		}
	}
	return Opens(own, j.Terms().Fewest(), now, frees)
}

// Opens returns when a job that needs nodes machines gets them of a reserved offer. free machines are available now;
// frees holds the known times at which others become free. It returns false if the time is unknown.
func Opens(free, nodes int, now time.Time, frees []time.Time) (at time.Time, known bool) {
	switch short := nodes - free; {
	case short <= 0:
		return now, true
	case short <= len(frees):
		return frees[short-1], true
	}
	return time.Time{}, false
}

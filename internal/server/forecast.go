package server

import (
	"context"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/engine"
	"scrimp/internal/market"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
	"scrimp/internal/sim"
	"scrimp/internal/wait"
)

// Rules is how the core of a server decides that has these engines: who plays a job
// forward plays it by these.
func Rules(speed float64, list []api.Engine) core.Config {
	span := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	var engines []engine.Engine
	for _, e := range list {
		if e.State == notConfigured {
			continue
		}
		engines = append(engines, engine.Engine{Name: e.Name, Timing: engine.Timing{
			Detect: span(e.Timing.Detect), Boot: span(e.Timing.Boot), Consistency: span(e.Timing.Consistency),
			GrantWait: span(e.Timing.GrantWait), Idle: span(e.Timing.Idle),
		}})
	}
	return control.CoreConfig(engine.Clock{Speed: speed}, engines)
}

// odds is what the newest forecast of a job says.
type odds struct {
	deadline *float64
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

// forecast plays the working jobs forward through the core, one after the other,
// beside the core's own work, until ctx ends.
func (s *Server) forecast(ctx context.Context) {
	mind := plan.NewPlanner()
	for last := ""; ctx.Err() == nil; {
		id, q, more := s.foretold(last)
		last = id
		if id == "" {
			_ = wait.For(ctx, forecastEvery)
			continue
		}
		began := time.Now()
		q.Planner, q.Halt = mind, func() bool { return ctx.Err() != nil || time.Since(began) > forecastLimit }
		f := sim.Ask(q)
		s.mu.Lock()
		if delete(s.odds, id); !f.Halted {
			s.odds[id] = odds{deadline: &f.InTime}
		}
		s.mu.Unlock()
		rest := time.Duration(float64(time.Since(began)) * (1/forecastShare - 1))
		if !more { // a round is over
			last, rest = "", max(rest, forecastEvery)
		}
		_ = wait.For(ctx, rest)
	}
}

// foretold returns the next job after last, by name, whose odds can be played;
// "" where there is none. more says that another follows it.
func (s *Server) foretold(last string) (id string, q sim.Scenario, more bool) {
	s.control.ReadUncommitted(func(m *core.Machine) {
		for _, a := range m.Live() { // by name
			j, _ := m.Job(a.Job())
			if a != j.Attempt() || a.Task() != core.TaskRunning || j.Terms().Deadline.IsZero() || j.StepRate() <= 0 ||
				j.ID() <= last {
				continue
			}
			if id != "" {
				more = true
				return
			}
			id, q = j.ID(), s.question(m, j)
		}
	})
	return id, q, more
}

// question asks how a job goes on. The caller reads the machine.
func (s *Server) question(m *core.Machine, j *core.Job) sim.Scenario {
	q := sim.Scenario{
		Terms: *j.Terms(), Now: s.control.Now(), Done: j.Step(), Pace: j.StepRate(), Restart: max(j.Restart(), time.Second),
		Save:   max(j.SaveCost(), time.Second),
		Config: s.control.Rules(), Spent: j.Spent(s.control.Now()), Hazards: map[market.OfferID]policy.Hazard{}, Runs: 20,
		Speed: s.clock.Speed,
	}
	q.Terms.Steps = j.Total()
	held := m.SpotHeld(q.Now)
	for o, l := range m.Sale() {
		l.Hazard.Served += held[o.ID]
		q.Offers, q.Quotes = append(q.Offers, o), append(q.Quotes, l.Quote)
		q.Hazards[o.ID] = l.Hazard
	}
	return q
}

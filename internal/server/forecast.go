package server

import (
	"context"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/market"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
	"scrimp/internal/sim"
)

// poll is how often the market is looked at, on the wall.
const poll = 300 * time.Millisecond

// Rules is how the core of a server decides on a market of that speed: who plays
// a job forward plays it by these.
func Rules(speed float64) core.Config { return control.CoreConfig(control.Clock{Speed: speed}, poll) }

// odds is what the newest forecast of a job says.
type odds struct {
	deadline *float64
}

// forecastEvery is how often a living job is played forward, on the wall.
const forecastEvery = 3 * time.Second

// forecast plays every working job forward through the core, beside the core's own work.
func (s *Server) forecast(ctx context.Context) {
	t := time.NewTicker(forecastEvery)
	defer t.Stop()
	mind := plan.NewMind()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		questions := map[string]sim.Question{}
		s.control.Read(func(m *core.Machine) {
			for _, a := range m.Live() {
				if j, _ := m.Job(a.Job); a == j.Attempt() && a.Phase == core.Working && !j.Terms.Deadline.IsZero() && j.StepRate > 0 && len(questions) < 8 {
					questions[j.ID] = s.question(m, j)
				}
			}
		})
		for id, q := range questions {
			q.Mind = mind
			f := sim.Ask(q)
			s.mu.Lock()
			s.odds[id] = odds{deadline: &f.InTime}
			s.mu.Unlock()
		}
	}
}

// question asks how a job goes on. The caller reads the machine.
func (s *Server) question(m *core.Machine, j *core.Job) sim.Question {
	q := sim.Question{
		Terms: j.Terms, Now: s.control.Now(), Done: j.Step, Pace: j.StepRate, Restart: max(j.Restart, time.Second), Save: max(j.SaveCost, time.Second),
		Config: Rules(s.clock.Speed), Spent: j.Spent(s.control.Now()), Hazards: map[market.OfferID]policy.Hazard{}, Runs: 20,
	}
	q.Terms.Steps = j.Total
	for o, l := range m.Sale() {
		q.Offers, q.Quotes = append(q.Offers, o), append(q.Quotes, l.Quote)
		q.Hazards[o.ID] = l.Hazard
	}
	return q
}

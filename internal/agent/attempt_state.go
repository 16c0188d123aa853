package agent

import (
	"scrimp/internal/wire/api"
)

func (g *attempt) state() ProgramState {
	now := g.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.knew = g.knew || g.stopping
	interval := g.a.Checkpoint.Interval
	if g.orders.Interval > 0 {
		interval = g.orders.Interval
	}
	s := ProgramState{
		ShouldCheckpoint: g.saves() && due(now, g.lastSave, interval, g.asked, g.stopping),
		ShouldStop:       g.stopping,
		Spent:            g.orders.Spent,
		Currency:         g.orders.Currency,
	}
	if s.Spent == "" {
		s.Spent = "0"
	}
	if s.Currency == "" {
		s.Currency = "USD"
	}
	if b := g.orders.BudgetLeft; b != "" {
		s.BudgetLeft = &b
	}
	var left float64
	switch {
	case g.orders.TimeToDeadline != 0:
		left = (g.orders.TimeToDeadline - now.Sub(g.ordersAt)).Seconds()
		s.TimeToDeadline = &left
	case !g.a.Deadline.IsZero():
		left = g.a.Deadline.Sub(now).Seconds()
		s.TimeToDeadline = &left
	}
	return s
}

// published reports a checkpoint.
func (g *attempt) published(s api.Saved) {
	g.trouble.is(troubleKeep, nil)
	if g.a.Node == 0 { // who publishes
		g.say(api.Message{Saved: &s})
	}
	g.mu.Lock()
	if s.Captured.After(g.lastSave) {
		g.lastSave = s.Captured
	}
	g.asked = false
	g.mu.Unlock()
}

package attempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scrimp/internal/agent/programapi"
	"scrimp/internal/wire/api"
)

// State implements programapi.Backend.
func (g *Attempt) State() programapi.State {
	now := g.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.knew = g.knew || g.stopping
	interval := g.Task.Checkpoint.Interval
	if g.orders.Interval > 0 {
		interval = g.orders.Interval
	}
	s := programapi.State{
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
	case !g.Task.Deadline.IsZero():
		left = g.Task.Deadline.Sub(now).Seconds()
		s.TimeToDeadline = &left
	}
	return s
}

// unsaved records the result of copying what the program saves, or of storing the copies. It
// reports a failure to the server once, until the agent keeps a checkpoint again.
func (g *Attempt) unsaved(what string, err error) {
	g.trouble.set(what, err)
	if err == nil {
		return
	}
	g.mu.Lock()
	said := g.unsavedSaid
	g.unsavedSaid = true
	g.mu.Unlock()
	if !said {
		why := what + ": " + err.Error()
		if g.Task.Node > 0 {
			why = fmt.Sprintf("node %d: %s", g.Task.Node, why)
		}
		g.queue(api.Message{Unsaved: &api.Unsaved{Why: why}})
	}
	g.Box.Wake()
}

// published reports a checkpoint.
func (g *Attempt) published(s api.Saved) {
	g.trouble.set(troubleKeep, nil)
	if s.Lacks != "" {
		s.Lacks = troubleCapture + ": " + s.Lacks
	}
	if g.Task.Node == 0 { // rank 0 publishes
		g.queue(api.Message{Saved: &s})
	}
	g.mu.Lock()
	if s.Captured.After(g.lastSave) {
		g.lastSave = s.Captured
	}
	g.asked, g.unsavedSaid = false, s.Lacks != ""
	g.mu.Unlock()
}

// Search implements programapi.Backend.
func (g *Attempt) Search(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	if g.Searches == nil {
		return 0, nil, errors.New("this agent cannot reach the server's searches")
	}
	return g.Searches(ctx, body)
}

// due reports whether a program that uses the helper library should save now.
func due(now, lastSave time.Time, interval time.Duration, asked, stopping bool) bool {
	return asked || stopping || interval > 0 && now.Sub(lastSave) >= interval
}

package attempt

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/agent/stop"
	"scrimp/internal/agent/wire"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// Slowest bounds the pause between two reports while the server is unreachable.
const Slowest = 5 * time.Second

// report sends queued messages and receives orders, about once a second, until ctx is done. It
// backs off while the server is unreachable.
func (g *Attempt) report(ctx context.Context) {
	pause := g.Task.Report
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-g.Box.Urgent:
		}
		sent := g.ship.Sent()
		said := api.Report{Attempt: g.Task.Attempt, Node: g.Task.Node, Now: wire.Wall(g.Now()), Messages: g.Box.Next(),
			First: g.Box.First(), LogEnd: g.ship.Size(), Trouble: g.masked(g.trouble.text()),
			Telemetry: g.series.Next(time.Now())}
		limits.Clip(&said)
		orders, err := g.server.Report(ctx, said)
		switch {
		case errors.Is(err, wire.ErrFenced):
			g.requestStop(g.fencedStop(err))
			g.mu.Lock()
			g.unwanted = true
			g.mu.Unlock()
			g.signalHeard()
			return
		case err != nil:
			if ctx.Err() == nil {
				g.Log.Warn("report", "error", err)
			}
			pause = min(2*max(pause, 100*time.Millisecond), max(Slowest, g.Task.Report))
			if wait.For(ctx, min(pause, 200*time.Millisecond)) != nil { // urgent messages must not bypass the backoff
				return
			}
		default:
			pause = g.Task.Report
			if orders.Report > 0 { // the server slows its agents down
				pause = min(orders.Report, Slowest)
			}
			g.ship.Every(pause)
			g.ship.Has(orders.LogEnd, sent)
			if g.obey(ctx, orders) {
				g.Box.Wake()
			}
		}
		timer.Reset(pause)
	}
}

// obey carries out the server's orders. more reports that the server acknowledged some messages and
// others still wait.
func (g *Attempt) obey(ctx context.Context, o api.Orders) (more bool) {
	more, err := g.Box.Ack(o.Ack, o.Heard)
	if err != nil {
		g.Log.Error("acknowledge messages", "error", err)
	}
	now := g.Now()
	if g.Contact != nil {
		g.Contact(now)
	}
	g.seat.Budget(o)
	if s := g.stopOf(o, now); s != nil {
		g.requestStop(*s)
	}
	for _, e := range o.Exec {
		g.commands.Start(ctx, e)
	}
	g.series.Taken(o.Telemetry)
	g.signalHeard()
	return more
}

// stopOf records the server's orders and returns the stop they ask for, or nil if there is none or
// the server asked before.
func (g *Attempt) stopOf(o api.Orders, now time.Time) *stop.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.silence.Answer(now)
	g.orders, g.ordersAt = o, now
	g.asked = g.asked || o.Save
	drain := o.Drain != nil && !g.draining && !g.ended
	dissolves := o.Fenced && o.Drain != nil && g.Task.Nodes > 1
	dissolve := dissolves && !g.dissolved
	g.dissolved = g.dissolved || dissolve
	g.draining = g.draining || drain
	g.off = g.off || o.Off
	g.unwanted = g.unwanted || g.ended && o.Fenced
	grace := g.Task.Grace
	if o.Drain != nil && o.Drain.Grace > 0 {
		grace = o.Drain.Grace
	}
	switch {
	case dissolve:
		return &stop.Request{Why: o.Drain.Why, Grace: grace, Fenced: true}
	case dissolves:
		return nil
	case o.Fenced:
		return &stop.Request{Why: "another attempt has the task", AtOnce: true, Fenced: true}
	case o.Off && !g.ended:
		return &stop.Request{Why: "the server switches the machine off", AtOnce: true}
	case drain:
		return &stop.Request{Why: o.Drain.Why, Grace: grace}
	}
	return nil
}

// signalHeard wakes goroutines that wait for the server's answer.
func (g *Attempt) signalHeard() {
	select {
	case g.heard <- struct{}{}:
	default:
	}
}

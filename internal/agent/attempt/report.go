package attempt

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/agent/session"
	"scrimp/internal/agent/wire"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/bound"
)

// Slowest is how long the pause between two reports grows while the server is away.
const Slowest = 5 * time.Second

// report sends what is queued and takes orders, about once a second, until ctx
// is done. While the server is away it asks less often.
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
		said := api.Report{Attempt: g.Task.Attempt, Node: g.Task.Node, Now: Wall(g.Now()), Messages: g.Box.Next(),
			First: g.Box.First(), LogEnd: g.ship.Size(), Trouble: g.masked(g.trouble.now()),
			Telemetry: g.series.Next(time.Now())}
		bound.Clip(&said)
		orders, err := g.server.Report(ctx, said)
		switch {
		case errors.Is(err, wire.ErrFenced):
			g.ask(g.fencedBy(err))
			g.mu.Lock()
			g.unwanted = true
			g.mu.Unlock()
			g.tellHeard()
			return
		case err != nil:
			if ctx.Err() == nil {
				g.Log.Warn("report", "error", err)
			}
			pause = min(2*max(pause, 100*time.Millisecond), max(Slowest, g.Task.Report))
			if wait.For(ctx, min(pause, 200*time.Millisecond)) != nil { // a crowd of urgent messages does not hammer it
				return
			}
		default:
			pause = g.Task.Report
			if orders.Report > 0 { // many agents report to this server
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

// obey does what the server's answer says. more says that messages arrived and others still wait.
func (g *Attempt) obey(ctx context.Context, o api.Orders) (more bool) {
	more, err := g.Box.Ack(o.Ack, o.Heard)
	if err != nil {
		g.Log.Error("acknowledge messages", "error", err)
	}
	now := g.Now()
	if g.Contact != nil {
		g.Contact(now)
	}
	if s := g.stopOf(o, now); s != nil {
		g.ask(*s)
	}
	for _, e := range o.Exec {
		g.exec(ctx, e)
	}
	g.series.Taken(o.Telemetry)
	g.tellHeard()
	return more
}

// stopOf notes the server's orders, and returns the end that they ask for; nil: none that was not asked for before.
func (g *Attempt) stopOf(o api.Orders, now time.Time) *stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.silence.answer(now)
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
		return &stop{why: o.Drain.Why, grace: grace, fenced: true}
	case dissolves:
		return nil
	case o.Fenced:
		return &stop{why: "another attempt has the task", at: true, fenced: true}
	case o.Off && !g.ended:
		return &stop{why: "the server switches the machine off", at: true}
	case drain:
		return &stop{why: o.Drain.Why, grace: grace}
	}
	return nil
}

// tellHeard wakes who waits for an answer of the server.
func (g *Attempt) tellHeard() {
	select {
	case g.heard <- struct{}{}:
	default:
	}
}

// exec runs a command once, however often the server asks for it.
func (g *Attempt) exec(ctx context.Context, e api.Exec) {
	g.mu.Lock()
	again, env := g.ran[e.ID], g.env
	g.ran[e.ID] = true
	g.mu.Unlock()
	if again {
		return
	}
	g.execs.Go(func() {
		var r api.ExecResult
		slots := g.slots
		if e.Input || e.Terminal != nil { // it lasts: commands do not wait for it
			slots = g.sessions
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
			defer func() { <-slots }()
		}
		switch {
		case env == nil:
			r = api.ExecResult{Exit: 1, Error: "the program has not started yet: try again in a moment"}
		case e.Input || e.Terminal != nil:
			s := session.Session{Server: g.server, ID: e.ID, Mask: g.mask, HangUp: g.Pace.HangUp}
			r = s.Run(ctx, e, g.Folders.Work, env, g.User)
		default:
			r = session.Execute(ctx, e.Command, g.Folders.Work, env, g.User, g.mask, session.Limit)
		}
		r.Error = g.masked(r.Error)
		if err := wire.Retry(ctx, func(ctx context.Context) error { return g.server.Exec(ctx, e.ID, r) }); err != nil {
			g.Log.Warn("hand in the result of a command", "id", e.ID, "error", err)
		}
	})
}

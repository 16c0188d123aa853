package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"scrimp/internal/control/inbox"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/wire/api"
)

// ErrFenced is returned to an attempt that no longer owns the task.
var ErrFenced = errors.New("another attempt has the task")

// ErrTaken is returned if another agent has claimed the task with the same token.
var ErrTaken = errors.New("the task was claimed by another agent")

// Live reports whether the attempt may still report. It may not once its machine has ended.
func (c *Control) Live(attempt string) (live bool) {
	last := c.readAt(func(m *core.Machine) uint64 { _, live = m.Attempt(attempt); return m.Seq() })
	return live || !c.durable.wait(last) // a crash may undo the event that ended it
}

// Report takes an agent's messages and returns its orders. Everything that the reply acknowledges is durable, except
// progress and usage: these become events only now and then, and newer ones replace what a crash loses. Nothing
// replaces a lost value of the job's metric, so Report acknowledges nothing from the first value that is not an event
// yet; the agent keeps it for a restarted server.
func (c *Control) Report(ctx context.Context, r api.Report) (api.Orders, error) {
	wall := time.Now()
	l, several := c.agents.HearReport(r, wall)
	if several && slices.ContainsFunc(r.Messages, func(m api.Message) bool { return m.Ended != nil }) {
		if err := c.proposeEnds(ctx, []string{r.Attempt}); err != nil { // messages of the other ranks come first
			return api.Orders{}, err
		}
	}
	if slices.ContainsFunc(r.Messages, func(m api.Message) bool { return !inbox.MayWait(m) }) {
		if !l.Acquire(ctx) {
			return api.Orders{}, context.Cause(ctx)
		}
		defer l.Release()
	}
	top := c.known(l)
	if top >= 0 {
		top = max(top, r.First-1) // later messages replace the ones before First
	}
	events, next := c.agents.Take(l, &r, top, wall)
	if len(events) > 0 {
		if err := c.proposeIndependent(ctx, c.agents.NotAhead(events)...); err != nil {
			c.agents.PutBack(l)
			return api.Orders{}, err
		}
	}
	ack, noticed := c.agents.Commit(l, &r, events, top, next, wall)
	if noticed {
		c.confirm(r.Attempt, r.Node)
	}
	o, err := c.orders(l, ack, len(events) == 0)
	o.Heard = max(0, next)
	return o, err
}

// known returns the highest message heard of the rank; -1 means that nobody knows the rank. The first call reads the
// history of the job's metric from the core.
func (c *Control) known(l *inbox.Latest) (top int64) {
	top, known := c.agents.Top(l)
	if top > 0 && known {
		return top
	}
	var h inbox.History
	c.ReadUncommitted(func(m *core.Machine) { // orders waits until it is durable
		if a, ok := m.Attempt(l.Attempt); ok {
			j, _ := m.Job(a.Job())
			top = max(top, heardOf(a, l.Node))
			h.Metric, h.Seen, h.Since = j.Terms().Metric, j.Seen(), a.Requested()
			g, _ := m.State().StudyOf(j)
			h.Trial = g != nil
		} else {
			top = -1
		}
	})
	if top >= 0 {
		c.agents.Learn(l, h)
	}
	return top
}

// confirm polls the engine, once, when an agent announces an interruption: only the engine's word counts for other
// jobs.
func (c *Control) confirm(attempt string, node int) {
	engine := ""
	c.Read(func(m *core.Machine) {
		if a := m.State().AttemptOf(attempt); a != nil && a.Rank(node) != nil {
			engine = a.Rank(node).Machine().Provider
		}
	})
	if s := c.sourceOf(engine); s != nil {
		s.pollNow()
	}
}

// staleOrders is how long an agent that only reports that it is alive may get its previous orders while the core is
// busy or its last events are not durable yet.
const staleOrders = 10 * time.Second

// orders returns what the agent of the rank should do now. A report that produces no event does not wait for the
// events of other agents.
func (c *Control) orders(l *inbox.Latest, ack int64, quick bool) (api.Orders, error) {
	now, wall := c.Now(), time.Now()
	var o api.Orders
	read := func(m *core.Machine) uint64 {
		a, live := m.Attempt(l.Attempt)
		if !live {
			o = api.Orders{Fenced: true}
			return m.Seq()
		}
		j, _ := m.Job(a.Job())
		o = c.ordersOf(m, j, a, l.Node, now)
		return m.ChangedAt(j)
	}
	old, ordered := c.agents.Orders(l)
	known := quick && wall.Sub(ordered) < staleOrders
	fresh := true
	switch {
	case !known:
		if !c.ReadUpTo(read) {
			return api.Orders{}, ErrStopping
		}
	default:
		last, ok := c.tryRead(read)
		if !ok || last > c.Durable() {
			o, fresh = old, false
		}
	}
	if fresh {
		c.agents.SetOrders(l, o, wall)
	}
	o.Ack, o.Report = max(0, ack), c.agents.ReportEvery()
	return o, nil
}

// ordersOf returns what the agent of a rank of a should do. All ranks of a draining attempt end. The caller holds the
// lock.
func (c *Control) ordersOf(m *core.Machine, j *core.Job, a *core.Attempt, node int, now time.Time) api.Orders {
	clock := c.cfg.Clock
	over, gang := taskEnded(a, node), a.Nodes() > 1
	leaves := !over && a.Rank(node).Leaving() != ""
	o := api.Orders{
		Off: over || leaves && !gang, Currency: string(j.Terms().Currency),
		Fenced:   !over && (j.Attempt() != a || leaves && gang),
		Interval: clock.Shrink(m.Interval(j)), Spent: j.Spent(now).String(),
	}
	if j.Terms().HasBudget {
		o.BudgetLeft = maxAmount(j.Terms().Budget.Sub(j.Spent(now))).String()
	}
	if !j.Terms().Deadline.IsZero() {
		o.TimeToDeadline = clock.Shrink(j.Terms().Deadline.Sub(now))
	}
	if d, ok := c.drains.of(a.ID()); ok && a.Draining() {
		o.Drain = &api.Drain{Why: d.Why, Grace: clock.Shrink(d.Grace)}
	}
	if leaves && gang { // the rest of the gang ends, and its machine stays
		o.Drain = &api.Drain{Why: a.Rank(node).Leaving(), Grace: clock.Shrink(j.Terms().Grace)}
	}
	return o
}

func maxAmount(a money.Amount) money.Amount {
	if a.Sign() < 0 {
		return money.Amount{}
	}
	return a
}

// Latest returns the newest status of the attempt, which is that of rank 0.
func (c *Control) Latest(attempt string) (inbox.Latest, bool) { return c.LatestOf(attempt, 0) }

// LatestOf returns the newest status of one rank of the attempt.
func (c *Control) LatestOf(attempt string, node int) (inbox.Latest, bool) {
	return c.agents.Latest(attempt, node)
}

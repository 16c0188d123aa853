package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
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
	c.agents.mu.Lock()
	l := c.agents.hear(r.Attempt, r.Node, wall)
	l.Trouble = r.Trouble
	several := len(c.agents.by[r.Attempt].heard()) > 1
	c.agents.mu.Unlock()
	if several && slices.ContainsFunc(r.Messages, func(m api.Message) bool { return m.Ended != nil }) {
		if err := c.proposeEnds(ctx, []string{r.Attempt}); err != nil { // messages of the other ranks come first
			return api.Orders{}, err
		}
	}
	if slices.ContainsFunc(r.Messages, func(m api.Message) bool { return !mayWait(m) }) {
		if !l.tell(ctx) {
			return api.Orders{}, context.Cause(ctx)
		}
		defer l.tellDone()
	}
	top := c.known(l)
	if top >= 0 {
		top = max(top, r.First-1) // later messages replace the ones before First
	}
	events, next := c.eventsOf(l, &r, top, wall)
	if len(events) > 0 {
		if err := c.proposeIndependent(ctx, c.notAhead(events)...); err != nil {
			c.agents.mu.Lock()
			l.put = 0
			c.agents.mu.Unlock()
			return api.Orders{}, err
		}
	}
	c.agents.mu.Lock()
	noticed := l.noticed
	l.committed(events, wall)
	noticed = l.noticed && !noticed
	if top >= 0 {
		l.top = max(l.top, next)
	}
	ack := next
	if r.First > 0 && len(l.values) > 0 {
		ack = min(ack, l.values[0].message-1)
	}
	c.agents.mu.Unlock()
	if noticed {
		c.confirm(r.Attempt, r.Node)
	}
	o, err := c.orders(l, ack, len(events) == 0)
	o.Heard = max(0, next)
	return o, err
}

// eventsOf returns the events of the report's messages above top, in order, and the number of the last message that
// counts as heard.
func (c *Control) eventsOf(l *Latest, r *api.Report, top int64, wall time.Time) (events []core.Event, next int64) {
	next = top
	c.agents.locked(func() {
		for _, m := range r.Messages {
			if r.First > 0 && top >= 0 && m.Seq > next+1 {
				break // an earlier server heard the missing message; the agent sends it again
			}
			if top >= 0 && m.Seq > top {
				events = append(events, c.heardFrom(l, ours(m, r.Now, wall), wall)...)
			}
			next = max(next, m.Seq)
		}
	})
	return events, next
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

// longestNotice bounds the notice that an agent may announce for its machine.
const longestNotice = time.Hour

// known returns the highest message heard of the rank; -1 means that nobody knows the rank. The first call reads the
// history of the job's metric from the core.
func (c *Control) known(l *Latest) (top int64) {
	c.agents.mu.Lock()
	top, known := l.top, l.known
	c.agents.mu.Unlock()
	if top > 0 && known {
		return top
	}
	var metric policy.Metric
	var seen policy.Seen
	var since time.Time
	trial := false
	c.ReadUncommitted(func(m *core.Machine) { // orders waits until it is durable
		if a, ok := m.Attempt(l.attempt); ok {
			j, _ := m.Job(a.Job())
			top, metric, seen, since = max(top, heardOf(a, l.node)), j.Terms().Metric, j.Seen(), a.Requested()
			g, _ := m.State().StudyOf(j)
			trial = g != nil
		} else {
			top = -1
		}
	})
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	if !l.known && top >= 0 {
		l.metric, l.seen, l.since, l.trial, l.known = metric, seen, since, trial, true
	}
	return top
}

// notAhead sets event times that an agent's clock puts into the future to now.
func (c *Control) notAhead(events []core.Event) []core.Event {
	now := c.Now()
	for i := range events {
		if events[i].At.After(now) {
			events[i].At = now
		}
	}
	return events
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// mayWait reports whether a message may be buffered instead of becoming an event at once.
func mayWait(m api.Message) bool {
	return m.Step != nil && len(m.Step.Broken) == 0 || m.Usage != nil
}

// heardFrom turns a message into events; a message that may wait yields none. Buffered progress becomes an event
// before whatever follows it: the job is judged by the program's last line, and the core accepts no older message
// after a newer one. The caller holds the lock of agentStatus.
func (c *Control) heardFrom(l *Latest, m api.Message, wall time.Time) []core.Event {
	switch {
	case l.node > 0 && (m.Step != nil || m.Saved != nil || m.Refused != nil):
		return nil // rank 0 speaks for the job
	case m.Step != nil:
		anew := m.Step.Anew && !l.Step.Anew // the total reported before no longer holds
		l.Step = *m.Step
		l.began = cmp.Or(l.began, wall)
		c.hearStep(l, m)
		if mayWait(m) && !anew {
			return nil
		}
		return c.waiting(l, m.Seq+1, wall)
	case m.Usage != nil:
		l.Usage = *m.Usage
		l.began = cmp.Or(l.began, wall)
		l.hearUsage(m, wall)
		return nil
	}
	b := c.body(l, m)
	if b == nil {
		return nil
	}
	return append(c.waiting(l, m.Seq, wall), c.said(l, m, b))
}

func (c *Control) said(l *Latest, m api.Message, b core.Body) core.Event {
	e, rank := c.event(c.cfg.Clock.ToMarket(m.At), b), api.Rank(l.attempt, l.node)
	e.Actor, e.Key = "agent:"+rank, fmt.Sprintf("%s/%d", rank, m.Seq)
	return e
}

// committed notes that the events are durable.
func (l *Latest) committed(events []core.Event, wall time.Time) {
	for _, e := range events {
		switch b := e.Body.(type) {
		case core.Progressed:
			l.told = wall
		case core.NoticeGiven:
			l.noticed = true
		case core.UsageSeen:
			l.used, l.idle = wall, b.Idle()
		}
		if n := strings.LastIndexByte(e.Key, '/'); n >= 0 {
			seq, _ := strconv.ParseInt(e.Key[n+1:], 10, 64) // said writes this format
			l.said = max(l.said, seq)
		}
	}
	l.put = 0
	if l.step.Seq <= l.said { // the core accepts no older message
		l.step, l.decides = api.Message{}, false
	}
	l.values = slices.DeleteFunc(slices.Clone(l.values), func(v heard) bool { return v.message <= l.said })
	if l.usage.Seq <= l.said {
		l.usage = api.Message{}
	}
}

// body turns a message into an event body; nil if the core does not need it.
func (c *Control) body(l *Latest, m api.Message) core.Body {
	clock, attempt, node := c.cfg.Clock, l.attempt, l.node
	switch {
	case m.Started != nil:
		return core.AttemptStarted{Attempt: attempt, Node: node, Message: m.Seq, Restored: m.Started.Restored,
			Step: m.Started.Step, Took: clock.Stretch(m.Started.Took)}
	case m.Step != nil:
		return core.Progressed{Attempt: attempt, Message: m.Seq, Step: m.Step.Step, Total: m.Step.Total, Epoch: m.Step.Epoch,
			Anew: m.Step.Anew, Metrics: m.Step.Metrics, Broken: m.Step.Broken}
	case m.Saved != nil:
		return core.CheckpointSaved{Attempt: attempt, Message: m.Seq, Manifest: m.Saved.Manifest, Step: m.Saved.Step,
			Bytes: m.Saved.Bytes, Uploaded: m.Saved.Uploaded,
			Captured: clock.ToMarket(m.Saved.Captured), Took: clock.Stretch(m.Saved.Took), Lacks: m.Saved.Lacks}
	case m.Unsaved != nil:
		return core.CheckpointFailed{Attempt: attempt, Node: node, Message: m.Seq, Why: m.Unsaved.Why}
	case m.Refused != nil:
		return core.CheckpointRefused{Attempt: attempt, Message: m.Seq, Manifest: m.Refused.Manifest, Why: m.Refused.Why}
	case m.Noticed != nil:
		until := m.Noticed.Until
		if last := time.Now().Add(longestNotice); until.After(last) {
			until = last
		}
		return core.NoticeGiven{Attempt: attempt, Node: node, Message: m.Seq, Source: m.Noticed.Source,
			Until: earlier(clock.ToMarket(until), c.Now().Add(quantity.Decade))} // an hour is long on a fast market
	case m.Usage != nil:
		return core.UsageSeen{Attempt: attempt, Node: node, Message: m.Seq, CPU: m.Usage.CPU, Memory: m.Usage.Memory,
			GPU: m.Usage.GPU, InUse: m.Usage.InUse}
	case m.Ended != nil:
		return core.AttemptEnded{Attempt: attempt, Node: node, Message: m.Seq, Reason: string(m.Ended.Reason),
			Exit: m.Ended.Exit, Step: m.Ended.Step, Saved: m.Ended.Saved, Outputs: m.Ended.Outputs, Error: m.Ended.Error,
			SetupStatus: m.Ended.SetupStatus, Keeping: clock.Stretch(m.Ended.Keeping)}
	}
	return nil
}

// staleOrders is how long an agent that only reports that it is alive may get its previous orders while the core is
// busy or its last events are not durable yet.
const staleOrders = 10 * time.Second

// orders returns what the agent of the rank should do now. A report that produces no event does not wait for the
// events of other agents.
func (c *Control) orders(l *Latest, ack int64, quick bool) (api.Orders, error) {
	now, wall := c.Now(), time.Now()
	var o api.Orders
	read := func(m *core.Machine) uint64 {
		a, live := m.Attempt(l.attempt)
		if !live {
			o = api.Orders{Fenced: true}
			return m.Seq()
		}
		j, _ := m.Job(a.Job())
		o = c.ordersOf(m, j, a, l.node, now)
		return m.ChangedAt(j)
	}
	c.agents.mu.Lock()
	old, known := l.orders, quick && wall.Sub(l.ordered) < staleOrders
	c.agents.mu.Unlock()
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
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	if fresh {
		l.orders, l.ordered = o, wall
	}
	o.Ack, o.Report = max(0, ack), c.reportEvery(c.agents.live)
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
func (c *Control) Latest(attempt string) (Latest, bool) { return c.LatestOf(attempt, 0) }

// LatestOf returns the newest status of one rank of the attempt.
func (c *Control) LatestOf(attempt string, node int) (Latest, bool) {
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	if l := c.agents.by[attempt].of(node); l != nil {
		return *l, true
	}
	return Latest{}, false
}

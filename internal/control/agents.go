package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/money"
)

// ErrFenced says that the attempt is no longer the one that has the task.
var ErrFenced = errors.New("another attempt has the task")

// Latest is the newest word of an attempt, which need not be an event yet.
type Latest struct {
	Heard time.Time // wall
	Step  api.Step
	Usage api.Usage
	// Trouble is what goes wrong on the machine now; empty: nothing does.
	Trouble string
	told    time.Time   // when progress last became an event, wall
	used    time.Time   // when usage did
	kept    api.Message // newest progress, where it is no event yet
}

// Progress and usage that decide nothing become an event no more often than this, on the wall.
const (
	stepEvery  = 2 * time.Second
	usageEvery = 10 * time.Second
)

// Claim marks the attempt as taken by its agent and returns it with its job. It
// waits a moment for the launch to be written, since a machine can be quicker than the answer to its launch.
func (c *Control) Claim(ctx context.Context, attempt, instance string) (core.Job, core.Attempt, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		changed := c.Changed()
		var job core.Job
		var a core.Attempt
		ok := false
		c.Read(func(m *core.Machine) {
			if live, found := m.Attempt(attempt); found {
				j, _ := m.Job(live.Job)
				a, job, ok = *live, *j, true
			}
		})
		switch {
		case !ok || a.Phase == core.Leaving || a.Asking || a.Instance != "" && a.Instance != instance:
			return job, a, ErrFenced
		case a.Phase != core.Asked:
			c.hear(attempt)
			return job, a, c.Tell(ctx, c.event(c.Now(), core.AgentClaimed{Attempt: attempt}))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return job, a, fmt.Errorf("claim %s: its launch is not answered yet", attempt)
		}
	}
}

func (c *Control) hear(attempt string) *Latest {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.heard[attempt] = now
	l := c.latest[attempt]
	if l == nil {
		l = &Latest{}
		c.latest[attempt] = l
	}
	l.Heard = now
	return l
}

// Report takes what an agent has to say and returns what it should do. What it
// says is durable when Report returns.
func (c *Control) Report(ctx context.Context, r api.Report) (api.Orders, error) {
	l := c.hear(r.Attempt)
	c.mu.Lock()
	l.Trouble = r.Trouble
	c.mu.Unlock()
	heard := int64(-1)
	c.Peek(func(m *core.Machine) { // orders waits until it is durable
		if a, ok := m.Attempt(r.Attempt); ok {
			heard = a.Heard
		}
	})
	var top int64
	var events []core.Event
	for _, msg := range r.Messages {
		top = max(top, msg.Seq)
		if heard < 0 || msg.Seq <= heard {
			continue
		}
		events = append(events, c.heardFrom(l, r.Attempt, msg)...)
	}
	now := c.Now()
	for i := range events { // an agent's clock may be ahead
		if events[i].At.After(now) {
			events[i].At = now
		}
	}
	if len(events) > 0 {
		if err := c.Tell(ctx, events...); err != nil {
			return api.Orders{}, err
		}
	}
	return c.orders(r.Attempt, max(top, heard)), nil
}

// heardFrom turns a message into events: none where it changes no decision. What
// follows progress that was no event finds it told: a program's last line is
// what its job is judged by.
func (c *Control) heardFrom(l *Latest, attempt string, m api.Message) []core.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	var events []core.Event
	add := func(m api.Message, b core.Body) {
		e := c.event(c.cfg.Clock.ToMarket(m.At), b)
		e.Actor, e.Key = "agent:"+attempt, fmt.Sprintf("%s/%d", attempt, m.Seq)
		events = append(events, e)
	}
	b := c.body(l, attempt, m)
	if b == nil {
		return nil
	}
	if l.kept.Step != nil {
		add(l.kept, progressed(attempt, l.kept))
		l.kept = api.Message{}
	}
	add(m, b)
	return events
}

func progressed(attempt string, m api.Message) core.Body {
	return core.Progressed{Attempt: attempt, Message: m.Seq, Step: m.Step.Step, Total: m.Step.Total, Epoch: m.Step.Epoch, Metrics: m.Step.Metrics, Broken: m.Step.Broken}
}

// body turns a message into an event, or nil where it changes no decision.
func (c *Control) body(l *Latest, attempt string, m api.Message) core.Body {
	clock := c.cfg.Clock
	switch {
	case m.Started != nil:
		return core.AttemptStarted{Attempt: attempt, Message: m.Seq, Restored: m.Started.Restored, Step: m.Started.Step, Took: clock.Stretch(m.Started.Took)}
	case m.Step != nil:
		l.Step = *m.Step
		if len(m.Step.Broken) == 0 && m.At.Sub(l.told) < stepEvery {
			l.kept = m
			return nil
		}
		l.told, l.kept = m.At, api.Message{}
		return progressed(attempt, m)
	case m.Saved != nil:
		return core.CheckpointSaved{Attempt: attempt, Message: m.Seq, Manifest: m.Saved.Manifest, Step: m.Saved.Step, Bytes: m.Saved.Bytes,
			Uploaded: m.Saved.Uploaded, Captured: clock.ToMarket(m.Saved.Captured), Took: clock.Stretch(m.Saved.Took)}
	case m.Refused != nil:
		return core.CheckpointRefused{Attempt: attempt, Message: m.Seq, Manifest: m.Refused.Manifest, Why: m.Refused.Why}
	case m.Noticed != nil:
		return core.NoticeGiven{Attempt: attempt, Message: m.Seq, Source: m.Noticed.Source, Until: clock.ToMarket(m.Noticed.Until)}
	case m.Usage != nil:
		l.Usage = *m.Usage
		if m.At.Sub(l.used) < usageEvery {
			return nil
		}
		l.used = m.At
		return core.UsageSeen{Attempt: attempt, Message: m.Seq, CPU: m.Usage.CPU, Memory: m.Usage.Memory}
	case m.Ended != nil:
		return core.AttemptEnded{Attempt: attempt, Message: m.Seq, Reason: string(m.Ended.Reason), Exit: m.Ended.Exit, Step: m.Ended.Step,
			Saved: m.Ended.Saved, Outputs: m.Ended.Outputs, Error: m.Ended.Error}
	}
	return nil
}

// orders is what the agent of the attempt should do now.
func (c *Control) orders(attempt string, ack int64) api.Orders {
	now := c.Now()
	var o api.Orders
	c.Look(func(m *core.Machine) uint64 {
		a, live := m.Attempt(attempt)
		if !live {
			o = api.Orders{Ack: ack, Fenced: true}
			return m.Seq()
		}
		j, _ := m.Job(a.Job)
		o = c.ordersOf(j, a, ack, now)
		return m.ChangedAt(j)
	})
	return o
}

// ordersOf is what the agent of a should do. The caller holds the lock.
func (c *Control) ordersOf(j *core.Job, a *core.Attempt, ack int64, now time.Time) api.Orders {
	clock := c.cfg.Clock
	o := api.Orders{
		Ack: ack, Off: a.Phase == core.Leaving, Currency: string(j.Terms.Currency), Fenced: j.Epoch != a.Epoch && a.Phase != core.Leaving,
		Interval: clock.Shrink(j.Interval), Spent: j.Spent(now).String(),
	}
	if j.Terms.HasBudget {
		o.BudgetLeft = maxAmount(j.Terms.Budget.Sub(j.Spent(now))).String()
	}
	if !j.Terms.Deadline.IsZero() {
		o.TimeToDeadline = clock.Shrink(j.Terms.Deadline.Sub(now))
	}
	if d, ok := c.drains[a.ID]; ok && a.Draining {
		o.Drain = &api.Drain{Why: d.Why, Grace: clock.Shrink(d.Grace)}
	}
	return o
}

func maxAmount(a money.Amount) money.Amount {
	if a.Sign() < 0 {
		return money.Amount{}
	}
	return a
}

// Latest returns the newest word of the attempt.
func (c *Control) Latest(attempt string) (Latest, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if l := c.latest[attempt]; l != nil {
		return *l, true
	}
	return Latest{}, false
}

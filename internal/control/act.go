package control

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/lib/wait"
)

// act runs one action in its own goroutine; its outcome is the next event. An action that panics runs again after a
// pause: its event is in the log, so a restarted process would meet the same panic.
func (c *Control) act(ctx context.Context, a core.Action) {
	if d, ok := a.(core.Drain); ok { // agents pull: the order waits for the next report
		c.drains.put(d)
		return
	}
	c.retry(ctx, "action "+a.Key(), func() { c.do(ctx, a) })
}

// retry runs f in a goroutine of its own until f returns without a panic.
func (c *Control) retry(ctx context.Context, what string, f func()) {
	c.acts.Go(func() { isolate.Retry(ctx, c.cfg.Log, what, f) })
}

func (c *Control) do(ctx context.Context, a core.Action) {
	switch a := a.(type) {
	case core.Launch:
		c.launch(ctx, a)
	case core.Cancel:
		c.cancel(ctx, a)
	case core.Terminate:
		c.terminate(ctx, a)
	case core.BuildTable:
		c.build(ctx, a)
	case core.RunRound:
		c.round(ctx)
	case core.Propose:
		c.proposeMoves(ctx, a.Group)
	case core.Notify:
		if c.cfg.Notify != nil {
			c.cfg.Notify(ctx, a)
		}
	}
}

func (c *Control) terminate(ctx context.Context, a core.Terminate) {
	s := c.sourceOf(a.Provider)
	if s == nil {
		c.without(a.Provider, "machine "+a.Instance+" is not given back")
		return
	}
	var said seldom
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		if !c.leads() {
			sleep(ctx, wait)
			continue
		}
		err := s.client.Terminate(ctx, a.Instance)
		if err == nil || errors.Is(err, engine.ErrNotFound) {
			c.poll(ctx, s) // the list contains the bill
			return
		}
		if said.again(time.Now()) {
			c.cfg.Log.Warn("instance not terminated yet; trying again", "instance", a.Instance, "error", err,
				isolate.Stack(err))
		}
		sleep(ctx, wait)
	}
}

// seldom rate-limits the log line of a condition that lasts: at once, after a minute, then less and less often, down
// to once an hour. An unreachable machine can stay so for days.
type seldom struct {
	next  time.Time
	pause time.Duration
}

func (s *seldom) again(now time.Time) bool {
	if now.Before(s.next) {
		return false
	}
	s.pause = min(max(2*s.pause, time.Minute), time.Hour)
	s.next = now.Add(s.pause)
	return true
}

// silent reports agents to the core that have been silent for too long. The boot limit covers agents that never
// spoke.
func (c *Control) silent(ctx context.Context) {
	c.awake()
	now := time.Now()
	var events []core.Event
	var silent []string
	living := map[string]int{}
	c.ReadUncommitted(func(m *core.Machine) {
		for _, a := range m.Live() {
			living[a.ID()] = Nodes(a)
			if a.Releasing() || a.Disowned() {
				continue
			}
			for node := range Nodes(a) {
				heard := c.agents.Last(a.ID(), node)
				if heard.IsZero() || taskEnded(a, node) || now.Round(0).Sub(heard.Round(0)) <= c.silenceAt(a.Provider()) {
					continue
				}
				silent = append(silent, a.ID())
				events = append(events, c.event(c.Now(), core.AgentSilent{Attempt: a.ID(), Node: node,
					Since: c.cfg.Clock.ToMarket(heard)}))
			}
		}
	})
	c.agents.Keep(living, now)
	if len(events) > 0 {
		_ = c.proposeEnds(ctx, silent, events...) // the next poll reports it again
	}
}

// silenceAt returns how long an agent on a machine of the engine may be silent. If the engine takes longer to detect
// a loss, the limit is 90 % of that time: its machines are remote, and a short network outage is no loss.
func (c *Control) silenceAt(provider string) time.Duration {
	if s := c.sourceOf(provider); s != nil && !s.Here {
		return max(c.cfg.Silence, s.Timing.Detect*9/10)
	}
	return c.cfg.Silence
}

// awake runs about once a second. After a gap, as on a laptop that slept, every agent gets the whole limit again: no
// agent could reach a stopped server, and local agents slept with it.
func (c *Control) awake() {
	now := time.Now().Round(0) // Round(0) drops the monotonic clock, which stops during sleep
	c.mu.Lock()
	gap, first := now.Sub(c.beat), c.beat.IsZero()
	c.beat = now
	c.mu.Unlock()
	if !first && gap > c.cfg.Silence/4 {
		c.agents.HearAll(now)
		c.cfg.Log.Info("the computer slept, or its clock was set: its agents have the whole limit to be heard again",
			"gap", gap, "limit", c.cfg.Silence)
	}
}

// sleep pauses a loop that checks ctx itself.
func sleep(ctx context.Context, d time.Duration) { _ = wait.For(ctx, d) }

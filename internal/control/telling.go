package control

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/core"
)

// tell waits until no other goroutine turns the attempt's messages into events. It returns false if ctx is done.
func (l *Latest) tell(ctx context.Context) bool {
	select {
	case l.telling <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// tellDone lets others turn the attempt's messages into events.
func (l *Latest) tellDone() { <-l.telling }

// due collects the buffered messages that become events now, in one transaction. Until release, no other goroutine
// makes events of these attempts' messages.
func (c *Control) due(wall time.Time) (all []core.Event, of map[*Latest][]core.Event) {
	of = map[*Latest][]core.Event{}
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	complete := false
	defer func() {
		for l := range of {
			if !complete { // another call panicked
				l.put = 0
				l.tellDone()
			}
		}
	}()
	for _, attempt := range slices.Sorted(maps.Keys(c.agents.by)) {
		for _, l := range c.agents.by[attempt].heard() {
			if list := c.dueOf(l, wall); len(list) > 0 {
				of[l] = list
				all = append(all, list...)
			}
		}
	}
	complete = true
	return all, of
}

// dueOf returns the events that are due for a rank. If there are any, no other goroutine makes events of its messages
// until release. The caller holds the lock of agentStatus.
func (c *Control) dueOf(l *Latest, wall time.Time) []core.Event {
	step, usage := c.stepDue(l, wall), c.usageDue(l, wall)
	if !step && !usage {
		return nil
	}
	select {
	case l.telling <- struct{}{}:
	default: // its agent has sent something urgent, which the due messages will precede
		return nil
	}
	upTo := l.usage.Seq
	if step || len(l.values) > 0 {
		upTo = max(upTo, l.step.Seq)
	}
	var list []core.Event
	defer func() {
		if len(list) == 0 { // also if waiting panics
			l.tellDone()
		}
	}()
	list = c.waiting(l, upTo+1, wall)
	return list
}

// release ends what due started; durable says whether its events are.
func (c *Control) release(of map[*Latest][]core.Event, durable bool, wall time.Time) {
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	for l, list := range of {
		if l.put = 0; durable {
			l.committed(list, wall)
		}
		l.tellDone()
	}
}

// flush turns due messages into events.
func (c *Control) flush(ctx context.Context) {
	wall := time.Now()
	all, of := c.due(wall)
	if len(all) == 0 {
		return
	}
	durable := false
	defer func() { c.release(of, durable, wall) }() // what is not durable stays buffered
	durable = c.proposeIndependent(ctx, c.notAhead(all)...) == nil
}

// proposeEnds proposes events that end attempts, after everything that the ranks of these attempts have reported: the
// core ignores reports of an attempt that has ended.
func (c *Control) proposeEnds(ctx context.Context, attempts []string, ends ...core.Event) error {
	wall := time.Now()
	of := map[*Latest][]core.Event{}
	defer func() { c.release(of, false, wall) }()
	var all []core.Event
	for _, attempt := range slices.Compact(slices.Sorted(slices.Values(attempts))) {
		for _, l := range c.agents.ranksOf(attempt) {
			if !l.tell(ctx) {
				return context.Cause(ctx)
			}
			of[l] = nil // release ends it in any case
			c.agents.locked(func() { of[l] = c.waiting(l, math.MaxInt64, wall) })
			all = append(all, of[l]...)
		}
	}
	if len(all)+len(ends) == 0 {
		return nil
	}
	if err := c.proposeIndependent(ctx, append(c.notAhead(all), ends...)...); err != nil {
		return err
	}
	c.release(of, true, wall)
	clear(of)
	return nil
}

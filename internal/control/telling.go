package control

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"scrimp/internal/core"
)

// tell waits until nobody else makes events of what the attempt has said; false: ctx is done.
func (l *Latest) tell(ctx context.Context) bool {
	select {
	case l.telling <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// toldAll lets others make events of what the attempt says.
func (l *Latest) toldAll() { <-l.telling }

// due is what of all that waits becomes an event now, in one transaction. Until release
// nobody else makes events of what those attempts have said.
func (c *Control) due(wall time.Time) (all []core.Event, of map[*Latest][]core.Event) {
	of = map[*Latest][]core.Event{}
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	for _, attempt := range slices.Sorted(maps.Keys(c.agents.of)) {
		l := c.agents.of[attempt]
		step, usage := c.stepDue(l, wall), c.usageDue(l, wall)
		if !step && !usage {
			continue
		}
		select {
		case l.telling <- struct{}{}:
		default: // its agent says something that cannot wait: what is due goes before that
			continue
		}
		upTo := l.usage.Seq
		if step || len(l.values) > 0 {
			upTo = max(upTo, l.step.Seq)
		}
		if list := c.waiting(l, attempt, upTo+1, wall); len(list) > 0 {
			of[l] = list
			all = append(all, list...)
		} else {
			l.toldAll()
		}
	}
	return all, of
}

// release ends what due began; durable says whether its events are.
func (c *Control) release(of map[*Latest][]core.Event, durable bool, wall time.Time) {
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	for l, list := range of {
		if l.put = 0; durable {
			l.committed(list, wall)
		}
		l.toldAll()
	}
}

// flush makes events of what is due.
func (c *Control) flush(ctx context.Context) {
	wall := time.Now()
	if all, of := c.due(wall); len(all) > 0 {
		c.release(of, c.proposeToEnd(ctx, c.notAhead(all)...) == nil, wall) // else it waits on
	}
}

// proposeEnds proposes events by which attempts end, after all that these have said: the
// core hears nothing of an attempt that is over.
func (c *Control) proposeEnds(ctx context.Context, attempts []string, ends ...core.Event) error {
	wall := time.Now()
	of := map[*Latest][]core.Event{}
	defer func() { c.release(of, false, wall) }()
	var all []core.Event
	for _, attempt := range slices.Compact(slices.Sorted(slices.Values(attempts))) {
		c.agents.mu.Lock()
		l := c.agents.of[attempt]
		c.agents.mu.Unlock()
		if l == nil {
			continue
		}
		if !l.tell(ctx) {
			return context.Cause(ctx)
		}
		c.agents.mu.Lock()
		of[l] = c.waiting(l, attempt, math.MaxInt64, wall)
		c.agents.mu.Unlock()
		all = append(all, of[l]...)
	}
	if err := c.proposeToEnd(ctx, append(c.notAhead(all), ends...)...); err != nil {
		return err
	}
	c.release(of, true, wall)
	clear(of)
	return nil
}

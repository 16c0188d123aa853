package control

import (
	"context"
	"slices"
	"time"

	"scrimp/internal/control/inbox"
	"scrimp/internal/decide/core"
)

// flush turns due messages into events.
func (c *Control) flush(ctx context.Context) {
	wall := time.Now()
	all, of := c.agents.Due(wall)
	if len(all) == 0 {
		return
	}
	durable := false
	defer func() { c.agents.Release(of, durable, wall) }() // what is not durable stays buffered
	durable = c.proposeIndependent(ctx, c.agents.NotAhead(all)...) == nil
}

// proposeEnds proposes events that end attempts, after everything that the ranks of these attempts have reported: the
// core ignores reports of an attempt that has ended.
func (c *Control) proposeEnds(ctx context.Context, attempts []string, ends ...core.Event) error {
	wall := time.Now()
	of := map[*inbox.Latest][]core.Event{}
	defer func() { c.agents.Release(of, false, wall) }()
	var all []core.Event
	for _, attempt := range slices.Compact(slices.Sorted(slices.Values(attempts))) {
		for _, l := range c.agents.RanksOf(attempt) {
			if !l.Acquire(ctx) {
				return context.Cause(ctx)
			}
			of[l] = nil // Release ends it in any case
			of[l] = c.agents.All(l, wall)
			all = append(all, of[l]...)
		}
	}
	if len(all)+len(ends) == 0 {
		return nil
	}
	if err := c.proposeIndependent(ctx, append(c.agents.NotAhead(all), ends...)...); err != nil {
		return err
	}
	c.agents.Release(of, true, wall)
	clear(of)
	return nil
}

package control

import (
	"context"
	"time"

	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
)

// restore builds the machine from the store.
func (c *Control) restore(ctx context.Context) error {
	r, err := replay.State(ctx, c.store, c.cfg.Log)
	if err != nil {
		return err
	}
	st := r.State
	c.snapped, c.tried = r.Snapshot, r.Read
	c.machine = core.On(st, plan.NewPlanner().OnRequest())
	c.machine.OnWork(c.onWork)
	c.wake = st.Now()
	c.durable.rise(st.Seq())
	for _, a := range c.machine.Live() {
		for node := range Nodes(a) {
			if !claimedOf(a, node).IsZero() {
				c.agents.Hear(a.ID(), node, time.Now()) // its agent gets the full limit to reconnect
			}
		}
	}
	return nil
}

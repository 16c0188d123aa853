package control

import (
	"context"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan/round"
)

// round runs a round beside the steps, on what stands when it begins, and tells what it proposes.
func (c *Control) round(ctx context.Context) {
	c.mu.Lock()
	s := c.machine.RoundInputs()
	c.mu.Unlock()
	p := round.Plan(s)
	b := core.RoundProposed{Base: p.Base, Groups: p.Groups, Again: p.Again}
	_ = c.Propose(ctx, c.event(c.Now(), b)) // where it is not written the core asks again
}

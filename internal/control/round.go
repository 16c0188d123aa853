package control

import (
	"context"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan/round"
)

// round runs a round beside the steps, on what stands when it begins, and tells what it proposes.
func (c *Control) round(ctx context.Context) {
	p := round.Plan(c.roundInputs())
	b := core.RoundProposed{Base: p.Base, Groups: p.Groups, Again: p.Again}
	_ = c.Propose(ctx, c.event(c.Now(), b)) // where it is not written the core asks again
}

func (c *Control) roundInputs() round.Inputs {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.RoundInputs()
}

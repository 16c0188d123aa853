package control

import (
	"context"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan/round"
	"scrimp/internal/work/groups"
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

// proposeMoves asks the planner of a group what it does next, beside the steps, and tells what it proposes.
func (c *Control) proposeMoves(ctx context.Context, group string) {
	s, ok := c.groupSnapshot(group)
	if !ok {
		return
	}
	b := core.Proposed{Group: group, Base: s.Base, Moves: c.moves(s)}
	_ = c.Propose(ctx, c.event(c.Now(), b)) // where it is not written the core asks again
}

func (c *Control) moves(s groups.Snapshot) []groups.Move {
	c.planning.Lock()
	defer c.planning.Unlock()
	return c.planner.Moves(s)
}

func (c *Control) groupSnapshot(group string) (groups.Snapshot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.GroupSnapshot(group)
}

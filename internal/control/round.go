package control

import (
	"context"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/propose"
)

// round plans a round while steps continue, on the state at its start, and proposes the result.
func (c *Control) round(ctx context.Context) {
	p := assign.Plan(c.roundInputs())
	b := core.RoundProposed{Base: p.Base, Groups: p.Groups, Again: p.Again}
	_ = c.Propose(ctx, c.event(c.Now(), b)) // if it is not written, the core requests another
}

func (c *Control) roundInputs() assign.Inputs {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.RoundInputs()
}

// proposeMoves asks the planner of a group for its next moves while steps continue, and proposes them.
func (c *Control) proposeMoves(ctx context.Context, group string) {
	s, ok := c.groupSnapshot(group)
	if !ok {
		return
	}
	moves, err := c.moves(ctx, s)
	if err != nil {
		return // the server is stopping
	}
	b := core.Proposed{Group: group, Base: s.Base, Moves: moves}
	_ = c.Propose(ctx, c.event(c.Now(), b)) // if it is not written, the core requests another
}

// moves returns the next moves of a group, completed from the pipeline's files or the conditions of the schedule.
func (c *Control) moves(ctx context.Context, s groups.Snapshot) (moves []groups.Move, err error) {
	reads := s.Pipeline != nil || s.Schedule != nil && s.Schedule.When.Any()
	switch {
	case reads && c.cfg.Resolve == nil:
		return nil, nil
	case s.Pipeline != nil: // without the planner's lock, because reading files takes time
		return propose.Stages(s, c.cfg.Resolve(ctx))
	}
	c.planning.Lock()
	moves = c.planner.Moves(s)
	c.planning.Unlock()
	for i := 0; reads && i < len(moves); i++ {
		if moves[i], err = c.cfg.Resolve(ctx)(s, moves[i]); err != nil {
			return nil, err
		}
	}
	return moves, nil
}

func (c *Control) groupSnapshot(group string) (groups.Snapshot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.GroupSnapshot(group)
}

package control

import (
	"context"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/work/groups"
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
	moves, err := c.resolved(ctx, s, c.moves(s))
	if err != nil {
		return // the server is stopping
	}
	b := core.Proposed{Group: group, Base: s.Base, Moves: moves}
	_ = c.Propose(ctx, c.event(c.Now(), b)) // if it is not written, the core requests another
}

// resolved returns the moves, completed from the pipeline's files or the conditions of the schedule.
func (c *Control) resolved(ctx context.Context, s groups.Snapshot, moves []groups.Move) ([]groups.Move, error) {
	if s.Pipeline == nil && (s.Schedule == nil || !s.Schedule.When.Any()) {
		return moves, nil
	}
	for i := range moves {
		if c.cfg.Resolve == nil {
			return nil, nil
		}
		v, err := c.cfg.Resolve(ctx, s, moves[i])
		if err != nil {
			return nil, err
		}
		moves[i] = v
	}
	return moves, nil
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

package admission

import (
	"errors"
	"fmt"
	"slices"

	"scrimp/internal/decide/state"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// checkPipeline returns an error if the terms of a pipeline are invalid.
func checkPipeline(t *state.GroupTerms) error {
	p := t.Pipeline
	if (t.Kind == groups.Pipeline && t.Member != nil) != (p != nil) {
		return errors.New("a pipeline needs a job and stages")
	}
	if p == nil {
		return nil
	}
	if !t.HasBudget || t.Budget.IsZero() {
		return errors.New("a pipeline needs a budget above zero")
	}
	if n := len(p.Stages); n == 0 || n > pipeline.MaxStages || n != len(t.Stages) {
		return fmt.Errorf("a pipeline needs from 1 to %d stages, each with a job", pipeline.MaxStages)
	}
	for i := range p.Stages {
		for _, n := range p.Stages[i].Needs {
			if n < 0 || n >= i {
				return fmt.Errorf("stage %s needs a stage that is not before it", p.Stages[i].Name)
			}
		}
	}
	return nil
}

// StageComes reports whether a waiting stage may start.
func StageComes(g *state.Group, stage int) bool {
	return g.Stages[stage].Phase == groups.Waiting &&
		!slices.ContainsFunc(g.Terms.Pipeline.Stages[stage].Needs, func(n int) bool { return !g.Stages[n].Phase.Good() })
}

// StageOf returns the stage of a move. ok is false if it has none.
func StageOf(g *state.Group, v groups.Move) (stage int, ok bool) {
	if g.Terms.Pipeline == nil || v.Of == nil || v.Of.Stage < 0 || v.Of.Stage >= len(g.Stages) {
		return 0, false
	}
	return v.Of.Stage, true
}

// StagesOver reports whether a pipeline has nothing more to do.
func StagesOver(g *state.Group) bool {
	return g.Open == 0 && !slices.ContainsFunc(g.Stages, func(x groups.Stage) bool { return !x.Phase.Settled() })
}

package core

import (
	"errors"
	"fmt"
	"slices"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// MadeElsewhere is why a stage waits: another pipeline makes the same.
const MadeElsewhere RefusalReason = "made_elsewhere"

// checkPipeline says what is wrong with the terms of a pipeline.
func checkPipeline(t *state.GroupTerms) error {
	p := t.Pipeline
	if (t.Kind == groups.Pipeline && t.Member != nil) != (p != nil) {
		return errors.New("a pipeline has a job and stages")
	}
	if p == nil {
		return nil
	}
	if !t.HasBudget || t.Budget.IsZero() {
		return errors.New("a pipeline needs a budget above zero")
	}
	if n := len(p.Stages); n == 0 || n > pipeline.MaxStages || n != len(t.Stages) {
		return fmt.Errorf("a pipeline has from 1 to %d stages, each with a job", pipeline.MaxStages)
	}
	for i := range p.Stages {
		for _, n := range p.Stages[i].Needs {
			if n < 0 || n >= i {
				return fmt.Errorf("stage %s needs one that does not come before it", p.Stages[i].Name)
			}
		}
	}
	return nil
}

// stageComes reports whether it is the turn of a stage that waits.
func stageComes(g *state.Group, stage int) bool {
	return g.Stages[stage].Phase == groups.Waiting &&
		!slices.ContainsFunc(g.Terms.Pipeline.Stages[stage].Needs, func(n int) bool { return !g.Stages[n].Phase.Good() })
}

// stageOf is the stage of a move; false: there is none.
func stageOf(g *state.Group, v groups.Move) (stage int, ok bool) {
	if g.Terms.Pipeline == nil || v.Of == nil || v.Of.Stage < 0 || v.Of.Stage >= len(g.Stages) {
		return 0, false
	}
	return v.Of.Stage, true
}

// stageMayBegin returns why the job of a stage may not begin; nil: it may. Its key was computed on the state after the
// event base.
func (m *Machine) stageMayBegin(g *state.Group, v groups.Move, base uint64) *Refusal {
	n, ok := stageOf(g, v)
	if !ok || !stageComes(g, n) && !m.faults.Unready || v.Of.Key == "" || m.s.Job(g.StageID(n)) != nil {
		return &Refusal{Why: NoGroup}
	}
	if ref, ok := m.s.MadeOf(g, v.Of.Key); ok && m.s.Group(ref.Group).Stages[ref.Stage].Since > base && !m.faults.Doubled {
		m.proposals.due(g.Name) // it was made meanwhile
		return &Refusal{Why: NoGroup}
	}
	if by := m.s.Making(g, v.Of.Key); by != "" && !m.faults.Doubled {
		return &Refusal{Job: g.StageID(n), Why: MadeElsewhere, Err: fmt.Errorf("%s makes what stage %s would make", by,
			g.Terms.Pipeline.Stages[n].Name)}
	}
	return nil
}

// settlesStage takes what becomes of a stage without a job, where it stands as who proposes it saw it.
func (m *Machine) settlesStage(g *state.Group, v groups.Move) bool {
	n, ok := stageOf(g, v)
	if !ok {
		return false
	}
	phase := g.Stages[n].Phase
	switch v.Do {
	case groups.Reuse:
		ok = stageComes(g, n) && v.Of.Key != "" && v.Of.From != ""
	case groups.Keep:
		ok = phase == groups.Made
	case groups.Fail:
		ok = phase == groups.Made || stageComes(g, n)
	case groups.Skip:
		ok = phase == groups.Waiting
	default:
		ok = false
	}
	if ok {
		m.fact(state.StageSettled{Group: g.Name, Stage: n})
		m.proposals.made()
	}
	return ok
}

// made lets the pipelines be looked at that wait for what another makes.
func (p *proposals) made() {
	for _, name := range p.elsewhere {
		p.due(name)
	}
	p.elsewhere = nil
}

// shareOfStage is the budget of a stage that begins: its own, where it has one, else as much of what is left as each
// other whose turn it is.
func (m *Machine) shareOfStage(g *state.Group, stage int, left money.Amount) money.Amount {
	if t := g.Terms.Stages[stage]; t.HasBudget {
		if t.Budget.Cmp(left) < 0 {
			return t.Budget
		}
		return left
	}
	turn := 0
	for n := range g.Stages {
		if stageComes(g, n) {
			turn++
		}
	}
	return left.Over(max(1, min(turn, g.Terms.AtOnce-g.Open)))
}

// stagesOver reports whether nothing more becomes of a pipeline.
func stagesOver(g *state.Group) bool {
	return g.Open == 0 && !slices.ContainsFunc(g.Stages, func(x groups.Stage) bool { return !x.Phase.Settled() })
}

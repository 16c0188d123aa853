package members

import (
	"fmt"
	"slices"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
)

// MadeElsewhere is why a stage waits: another pipeline is making the same outputs.
const MadeElsewhere step.RefusalReason = "made_elsewhere"

// DeployedElsewhere is why a stage that deploys waits: another run of the pipeline is deploying a version.
const DeployedElsewhere step.RefusalReason = "deployed_elsewhere"

// outdated reports whether the deployed version changed after the event base: a stage deployed, or failed to. The
// verdicts of the stage's gates, and the outputs that it may reuse, are then out of date, and the core asks the planner
// again.
func (ms *Members) outdated(g *state.Group, stage int, base uint64) bool {
	x := &g.Terms.Pipeline.Stages[stage]
	if !x.ComparesDeployed() && !x.MayDeploy() {
		return false
	}
	_, since, _ := ms.State.Deployed(g)
	_, failed, _ := ms.State.Broken(g)
	if max(since, failed) <= base {
		return false
	}
	ms.Proposals.due(g.Name)
	return true
}

// deploying is the job that deploys another version, if the stage would deploy too; "": none does.
func (ms *Members) deploying(g *state.Group, stage int) string {
	if p := g.Terms.Pipeline; !p.Stages[stage].MayDeploy() || stage != p.Deploys() {
		return ""
	}
	return ms.State.Deploying(g)
}

// mayReuse returns why a stage may not be reused, or nil. A stage that deploys may be reused only while its version is
// known to be the deployed one: not while another run deploys, nor after one failed to.
func (ms *Members) mayReuse(g *state.Group, v groups.Move) *step.Refusal {
	n, ok := stageOf(g, v)
	if !ok {
		return &step.Refusal{Why: step.NoGroup}
	}
	if p := g.Terms.Pipeline; !p.Stages[n].MayDeploy() || n != p.Deploys() || ms.Faults.Trusts {
		return nil
	}
	if by := ms.deploying(g, n); by != "" {
		return deployedElsewhere(g, n, by)
	}
	ref, _, ok := ms.State.Deployed(g)
	if _, _, broken := ms.State.Broken(g); !ok || broken || ms.State.Group(ref.Group).Stages[ref.Stage].Job != v.Of.From {
		return &step.Refusal{Why: step.NoGroup}
	}
	return nil
}

// deployedElsewhere refuses a stage until the job by, which deploys another version, has ended.
func deployedElsewhere(g *state.Group, stage int, by string) *step.Refusal {
	return &step.Refusal{Job: g.StageID(stage), Why: DeployedElsewhere,
		Err: fmt.Errorf("%s puts another version in place", by)}
}

// stageMayBegin returns why the job of a stage may not start, or nil. Its key was computed on the state after the
// event base.
func (ms *Members) stageMayBegin(g *state.Group, v groups.Move, base uint64) *step.Refusal {
	n, ok := stageOf(g, v)
	if !ok || !stageComes(g, n) && !ms.Faults.Unready || v.Of.Key == "" || ms.State.Job(g.StageID(n)) != nil {
		return &step.Refusal{Why: step.NoGroup}
	}
	if ms.outdated(g, n, base) {
		return &step.Refusal{Why: step.NoGroup}
	}
	if by := ms.deploying(g, n); by != "" {
		return deployedElsewhere(g, n, by)
	}
	ref, ok := ms.State.MadeOf(g, v.Of.Key)
	if ok && ms.State.Group(ref.Group).Stages[ref.Stage].Since > base && !ms.Faults.Doubled {
		ms.Proposals.due(g.Name) // it was made meanwhile
		return &step.Refusal{Why: step.NoGroup}
	}
	if by := ms.State.Making(g, v.Of.Key); by != "" && !ms.Faults.Doubled {
		return &step.Refusal{Job: g.StageID(n), Why: MadeElsewhere, Err: fmt.Errorf("%s already produces the output of "+
			"stage %s", by, g.Terms.Pipeline.Stages[n].Name)}
	}
	return nil
}

// settlesStage settles a stage without a job, if the stage is still as the planner saw it.
func (ms *Members) settlesStage(g *state.Group, v groups.Move, base uint64) bool {
	n, ok := stageOf(g, v)
	if !ok || v.Do != groups.Keep && ms.outdated(g, n, base) {
		return false
	}
	phase := g.Stages[n].Phase
	switch v.Do {
	case groups.Reuse:
		ok = stageComes(g, n) && v.Of.Key != "" && v.Of.From != ""
	case groups.Keep:
		ok = phase == groups.Made
	case groups.Fail:
		ok = phase == groups.Made || phase == groups.Waiting // also before its turn: a gate of it can never pass
	case groups.Skip:
		ok = phase == groups.Waiting
	default:
		ok = false
	}
	if ok {
		ms.Fact(state.StageSettled{Group: g.Name, Stage: n})
		ms.Proposals.made()
	}
	return ok
}

// made marks the pipelines as changed that wait for outputs of another one.
func (p *Proposals) made() {
	for _, name := range p.elsewhere {
		p.due(name)
	}
	p.elsewhere = nil
}

// shareOfStage is the budget of a stage that starts: its own if it has one, else an equal share, among the stages
// that may start, of what is left.
func (ms *Members) shareOfStage(g *state.Group, stage int, left money.Amount) money.Amount {
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

// stageComes reports whether a waiting stage may start.
func stageComes(g *state.Group, stage int) bool {
	return g.Stages[stage].Phase == groups.Waiting &&
		!slices.ContainsFunc(g.Terms.Pipeline.Stages[stage].Needs, func(n int) bool { return !g.Stages[n].Phase.Good() })
}

// stageOf returns the stage of a move. ok is false if it has none.
func stageOf(g *state.Group, v groups.Move) (stage int, ok bool) {
	if g.Terms.Pipeline == nil || v.Of == nil || v.Of.Stage < 0 || v.Of.Stage >= len(g.Stages) {
		return 0, false
	}
	return v.Of.Stage, true
}

// stagesOver reports whether a pipeline has nothing more to do.
func stagesOver(g *state.Group) bool {
	return g.Open == 0 && !slices.ContainsFunc(g.Stages, func(x groups.Stage) bool { return !x.Phase.Settled() })
}

package propose

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// StagesAtOnce bounds the moves of one proposal about a pipeline: the core applies them in one step, and one event
// holds them. Each input counts like a move, and a stage that starts a job like startWeight moves.
const (
	StagesAtOnce = 4096
	startWeight  = 8
)

// Stages starts the stages of a pipeline whose turn it is, and settles those that never start. resolve reads the
// files. If it finds that the outputs of a stage exist already, that stage takes no place of a running one, and those
// that need it follow in the same proposal, so that a run without changes takes few proposals. A nil resolve leaves
// the moves as they are.
func Stages(s groups.Snapshot, resolve groups.Resolver) (moves []groups.Move, err error) {
	now := append([]groups.Stage(nil), s.Stages...)
	s.Stages = now
	gated := make([]bool, len(now)) // a gate skips the stage: its own, or that of a stage that it needs
	settled, begins, size := 0, 0, 0
	stuck := unreported(now, 0)
	for i := range now {
		var t outcome
		switch now[i].Phase {
		case groups.Waiting:
			t = waiting(s, now, i, s.Open+begins, stuck)
		case groups.Made:
			t = outcome{do: groups.Keep, why: "its job has succeeded"}
		case groups.Running, groups.Done, groups.Reused, groups.Skipped, groups.StageFailed: // nothing to do
		}
		gated[i] = now[i].Phase == groups.Skipped && byGate(s.Pipeline, now, gated, i)
		if t.do != "" && size < StagesAtOnce {
			v, err := move(s, i, t, gated[i], resolve)
			if err != nil {
				return nil, err
			}
			moves, t.do, size = append(moves, v), v.Do, size+weight(v)
			if v.Do == groups.Reuse && stuck < 0 {
				stuck = unreported(now[i:i+1], i)
			}
		}
		if t.do == groups.Start {
			begins++
		}
		if now[i].Phase.Settled() {
			settled++
		}
	}
	if settled == len(now) && s.Open == 0 && len(moves) == 0 {
		return []groups.Move{{Do: groups.Finish, Why: "all_over"}}, nil
	}
	return moves, nil
}

// move returns the resolved move of an outcome of the stage at a position, which it changes in s if the move reuses it.
func move(s groups.Snapshot, i int, t outcome, gated bool, resolve groups.Resolver) (v groups.Move, err error) {
	v = groups.Move{Do: t.do, Why: t.why, Of: &groups.StageMove{Stage: i, Gated: gated}}
	v.Of.Gates = t.verdicts
	if resolve != nil {
		v, err = resolve(s, v)
	}
	if err == nil && v.Do == groups.Reuse {
		s.Stages[i].Reuse(v)
	}
	return v, err
}

// weight is what a move counts towards StagesAtOnce.
func weight(v groups.Move) int {
	if v.Do == groups.Start {
		return startWeight + len(v.Of.Inputs)
	}
	return 1 + len(v.Of.Inputs)
}

// outcome is what happens to a stage, and why. The zero outcome leaves it as it is.
type outcome struct {
	do       groups.Do
	why      string
	verdicts []pipeline.Verdict // of its gates; those of a stage that starts may be open: the server decides them
}

// unreported returns the position of the first stage that has ended without a metric that a gate judges, or -1. The
// stages of the list are those from the position from on.
func unreported(list []groups.Stage, from int) int {
	n := slices.IndexFunc(list, func(x groups.Stage) bool { return x.Phase.Good() && len(x.Wrong) > 0 })
	if n < 0 {
		return n
	}
	return from + n
}

// stop returns the outcome of a stage that has not started when the stage stuck has not reported a metric that a gate
// judges. The gate can never pass, so no stage starts any more: it would cost money for a run that fails.
func stop(p *pipeline.Spec, now []groups.Stage, i, stuck int) outcome {
	name := slices.Min(slices.Collect(maps.Keys(now[stuck].Wrong)))
	err := &pipeline.NoMetricError{Position: stuck, Stage: p.Stages[stuck].Name, Metric: name}
	if slices.Contains(p.JudgedOf(stuck, i), name) {
		return outcome{do: groups.Fail, why: why(now, err)}
	}
	return outcome{do: groups.Skip, why: "the pipeline stops: " + why(now, err)}
}

// waiting returns the outcome of a stage that waits while open stages run, and notes in now the end of one that never
// starts: the stages that need it see it in the same round. stuck is the result of unreported.
func waiting(s groups.Snapshot, now []groups.Stage, i, open, stuck int) outcome {
	t := turn(s.Pipeline, now, i, s.Deployed)
	if stuck >= 0 && t.do != groups.Fail && len(t.verdicts) == 0 {
		if end := stop(s.Pipeline, now, i, stuck); end.do == groups.Fail || t.do != groups.Skip {
			t = end
		}
	}
	switch t.do { //nolint:exhaustive // a stage that waits has no other outcome
	case groups.Skip:
		now[i].Phase, now[i].Gates = groups.Skipped, t.verdicts
	case groups.Fail:
		now[i].Phase = groups.StageFailed
	case groups.Start:
		if open >= s.AtOnce {
			return outcome{}
		}
	}
	return t
}

// byGate reports whether a gate skipped a stage, its own or that of a stage that it needs.
func byGate(p *pipeline.Spec, now []groups.Stage, gated []bool, i int) bool {
	if pipeline.Fails(now[i].Gates) != nil || now[i].Drift != nil && !now[i].Drift.Pass {
		return true
	}
	return slices.ContainsFunc(p.Stages[i].Needs, func(n int) bool { return gated[n] })
}

// turn returns the outcome of a stage that waits, as if any number of stages could run at once.
func turn(p *pipeline.Spec, now []groups.Stage, i int, deployed *pipeline.Deployed) outcome {
	waits := false
	for _, n := range p.Stages[i].Needs {
		switch phase := now[n].Phase; {
		case phase == groups.Skipped || phase == groups.StageFailed:
			return outcome{do: groups.Skip, why: fmt.Sprintf("it needs %s, which %s", p.Stages[n].Name,
				map[groups.StagePhase]string{groups.Skipped: "was skipped", groups.StageFailed: "failed"}[phase])}
		case !phase.Good():
			waits = true
		}
	}
	if waits {
		return outcome{}
	}
	verdicts, err := p.Judge(i, func(stage int) map[string]string { return now[stage].Metrics }, deployed)
	v := pipeline.Fails(verdicts)
	if err != nil || v != nil { // only gates that compared have a verdict
		verdicts = slices.DeleteFunc(verdicts, func(v pipeline.Verdict) bool { return v.Open })
	}
	switch {
	case err != nil:
		return outcome{groups.Fail, why(now, err), verdicts}
	case v != nil:
		return outcome{groups.Skip, v.Why, verdicts}
	}
	return outcome{groups.Start, "", verdicts}
}

// why is the reason of a gate that has nothing to judge, with what is wrong with the file of the metric.
func why(now []groups.Stage, err error) string {
	no, is := errors.AsType[*pipeline.NoMetricError](err)
	if !is {
		return err.Error()
	}
	wrong := now[no.Position].Wrong
	if text := cmp.Or(wrong[no.Metric], wrong[""]); text != "" {
		return err.Error() + ": " + text
	}
	return err.Error()
}

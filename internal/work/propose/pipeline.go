package propose

import (
	"fmt"
	"slices"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// stages starts the stages of a pipeline whose turn it is, and settles those that never come. Who carries the moves out
// looks at the files: a stage that is to start may be one whose outputs were made before.
func stages(s groups.Snapshot) (moves []groups.Move) {
	p, now := s.Pipeline, append([]groups.Stage(nil), s.Stages...)
	settled, begins := 0, 0
	gated := make([]bool, len(now)) // a gate skips the stage, its own or that of one that it needs
	add := func(do groups.Do, stage int, why string, verdicts []pipeline.Verdict) {
		of := &groups.StageMove{Stage: stage, Gated: gated[stage]}
		of.Gates = verdicts
		moves = append(moves, groups.Move{Do: do, Why: why, Of: of})
	}
	for i := range now {
		x := &now[i]
		if x.Phase == groups.Waiting {
			do, why, verdicts := turn(p, now, i, s.Deployed)
			switch {
			case do == groups.Skip:
				x.Phase, x.Gates = groups.Skipped, verdicts // those that need it see it
				gated[i] = byGate(p, now, gated, i)
			case do == groups.Fail:
				x.Phase = groups.StageFailed
			case do == groups.Start && s.Open+begins >= s.AtOnce:
				do = ""
			case do == groups.Start:
				begins++
			}
			if do != "" && len(moves) < MovesAtOnce {
				add(do, i, why, verdicts)
			}
		} else if x.Phase == groups.Made && len(moves) < MovesAtOnce {
			add(groups.Keep, i, "its job has succeeded", nil)
		} else if x.Phase == groups.Skipped {
			gated[i] = byGate(p, now, gated, i)
		}
		if x.Phase.Settled() {
			settled++
		}
	}
	if settled == len(now) && s.Open == 0 && len(moves) == 0 {
		return []groups.Move{{Do: groups.Finish, Why: "all_over"}}
	}
	return moves
}

// byGate reports whether a gate skipped a stage, its own or that of a stage that it needs.
func byGate(p *pipeline.Spec, now []groups.Stage, gated []bool, i int) bool {
	if pipeline.Fails(now[i].Gates) != nil {
		return true
	}
	return slices.ContainsFunc(p.Stages[i].Needs, func(n int) bool { return gated[n] })
}

// turn is what becomes of a stage that waits: it starts, is skipped or fails; "": it waits on. Of a stage that starts,
// verdicts may be open: who looks at the files decides those.
func turn(p *pipeline.Spec, now []groups.Stage, i int, deployed *pipeline.Deployed) (do groups.Do, why string,
	verdicts []pipeline.Verdict) {
	waits := false
	for _, n := range p.Stages[i].Needs {
		switch phase := now[n].Phase; {
		case phase == groups.Skipped || phase == groups.StageFailed:
			return groups.Skip, fmt.Sprintf("it needs %s, which %s", p.Stages[n].Name, map[groups.StagePhase]string{
				groups.Skipped: "was skipped", groups.StageFailed: "failed"}[phase]), nil
		case !phase.Good():
			waits = true
		}
	}
	if waits {
		return "", "", nil
	}
	verdicts, err := p.Judge(i, func(stage int) map[string]string { return now[stage].Metrics }, deployed)
	v := pipeline.Fails(verdicts)
	if err != nil || v != nil { // what was not compared is no verdict
		verdicts = slices.DeleteFunc(verdicts, func(v pipeline.Verdict) bool { return v.Open })
	}
	switch {
	case err != nil:
		return groups.Fail, err.Error(), verdicts
	case v != nil:
		return groups.Skip, v.Why, verdicts
	}
	return groups.Start, "", verdicts
}

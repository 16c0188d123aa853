package propose

import (
	"errors"
	"fmt"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// stages starts the stages whose dependencies are done, and settles those that never start. Whoever carries the moves
// out examines the files: the outputs of a stage to start may exist already.
func stages(s groups.Snapshot) (moves []groups.Move) {
	p, now := s.Pipeline, append([]groups.Stage(nil), s.Stages...)
	settled, begins := 0, 0
	add := func(do groups.Do, stage int, why string) {
		moves = append(moves, groups.Move{Do: do, Why: why, Of: &groups.StageMove{Stage: stage}})
	}
	for i := range now {
		x := &now[i]
		if x.Phase == groups.Waiting {
			do, why := turn(p, now, i)
			switch {
			case do == groups.Skip:
				x.Phase = groups.Skipped // its dependents see it
			case do == groups.Fail:
				x.Phase = groups.StageFailed
			case do == groups.Start && s.Open+begins >= s.AtOnce:
				do = ""
			case do == groups.Start:
				begins++
			}
			if do != "" && len(moves) < MovesAtOnce {
				add(do, i, why)
			}
		} else if x.Phase == groups.Made && len(moves) < MovesAtOnce {
			add(groups.Keep, i, "its job has succeeded")
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

// turn returns what happens to a waiting stage: it starts, is skipped or fails, or with "" keeps waiting.
func turn(p *pipeline.Spec, now []groups.Stage, i int) (do groups.Do, why string) {
	waits := false
	for _, n := range p.Stages[i].Needs {
		switch phase := now[n].Phase; {
		case phase == groups.Skipped || phase == groups.StageFailed:
			return groups.Skip, fmt.Sprintf("it needs %s, which %s", p.Stages[n].Name, map[groups.StagePhase]string{
				groups.Skipped: "was skipped", groups.StageFailed: "failed"}[phase])
		case !phase.Good():
			waits = true
		}
	}
	if waits {
		return "", ""
	}
	pass, why, err := p.Judge(i, func(stage int) map[string]string { return now[stage].Metrics })
	switch {
	case errors.Is(err, pipeline.ErrMetric) || err != nil:
		return groups.Fail, err.Error()
	case !pass:
		return groups.Skip, why
	}
	return groups.Start, why
}

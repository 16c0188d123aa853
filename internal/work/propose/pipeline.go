package propose

import (
	"errors"
	"fmt"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// stages starts the stages of a pipeline whose turn it is, and settles those that never come. Who carries the moves out
// looks at the files: a stage that is to start may be one whose outputs were made before.
func stages(s groups.Snapshot) (moves []groups.Move) {
	now := append([]groups.Stage(nil), s.Stages...)
	settled, begins := 0, 0
	for i := range now {
		var do groups.Do
		var why string
		switch now[i].Phase {
		case groups.Waiting:
			do, why = waiting(s, now, i, s.Open+begins)
		case groups.Made:
			do, why = groups.Keep, "its job has succeeded"
		}
		if do == groups.Start {
			begins++
		}
		if do != "" && len(moves) < MovesAtOnce {
			moves = append(moves, groups.Move{Do: do, Why: why, Of: &groups.StageMove{Stage: i}})
		}
		if now[i].Phase.Settled() {
			settled++
		}
	}
	if settled == len(now) && s.Open == 0 && len(moves) == 0 {
		return []groups.Move{{Do: groups.Finish, Why: "all_over"}}
	}
	return moves
}

// waiting returns what happens to a stage that waits while open stages run, and notes in now the end of one that never
// starts: the stages that need it see it in the same round.
func waiting(s groups.Snapshot, now []groups.Stage, i, open int) (do groups.Do, why string) {
	do, why = turn(s.Pipeline, now, i)
	switch do {
	case groups.Skip:
		now[i].Phase = groups.Skipped
	case groups.Fail:
		now[i].Phase = groups.StageFailed
	case groups.Start:
		if open >= s.AtOnce {
			return "", ""
		}
	}
	return do, why
}

// turn is what becomes of a stage that waits: it starts, is skipped or fails; "": it waits on.
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

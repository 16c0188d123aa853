package sim

import (
	"math/rand/v2"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/work/groups"
)

// round runs a round of the reserved machines. Its groups arrive when it ends, so changes meanwhile make them stale. A
// server that dies meanwhile never gets them.
func (w *World) round() {
	s := w.m.RoundInputs()
	p := assign.Plan(s)
	took := assign.Took(&s) * time.Duration(max(1, w.slowRounds))
	life := w.lives
	w.after(took, func() {
		if life == w.lives && w.up {
			w.step(core.RoundProposed{Base: p.Base, Groups: p.Groups, Again: p.Again})
		}
	})
}

// unskip makes moves those of a wrong planner, which starts the runs that it should skip.
func unskip(moves []groups.Move) {
	for i := range moves {
		if moves[i].Do == groups.Skip {
			moves[i].Do = groups.Start
		}
	}
}

// propose asks a planner for the next moves of a group. Some proposals are lost, and some arrive late, after newer
// ones.
func (w *World) propose(a core.Propose) {
	s, ok := w.m.GroupSnapshot(a.Group)
	if !ok {
		return
	}
	if w.fault == FaultCrowded {
		s.AtOnce += 2
	}
	moves := w.planner.Moves(s)
	if w.look != nil && (s.Pipeline != nil || s.Schedule != nil) {
		if moves = w.look(s, moves); w.fault == FaultUnready && s.Pipeline != nil {
			moves = unready(s, moves)
		}
	}
	rng := rand.New(rand.NewPCG(w.seed, a.Base)) // a separate random source leaves lives without groups unchanged
	if s.Schedule != nil && rng.IntN(4) == 0 {
		unskip(moves)
	}
	life := w.lives
	switch after := time.Second; rng.IntN(20) {
	case 0: // lost
	case 1:
		after = 20 * time.Minute // the core has asked again meanwhile
		fallthrough
	default:
		w.after(after, func() {
			if life == w.lives && w.up {
				step := func() bool { return w.step(core.Proposed{Group: a.Group, Base: s.Base, Moves: moves}) }
				if w.members != nil {
					w.members(a.Group, moves, step)
				} else {
					step()
				}
			}
		})
	}
}

// unready adds a move that starts a stage before its dependencies are done.
func unready(s groups.Snapshot, moves []groups.Move) []groups.Move {
	for n := range s.Stages {
		if s.Stages[n].Phase == groups.Waiting && len(s.Pipeline.Stages[n].Needs) > 0 {
			of := &groups.StageMove{Stage: n, Key: "0"}
			return append(moves, groups.Move{Do: groups.Start, Of: of})
		}
	}
	return moves
}

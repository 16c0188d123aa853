package propose

import (
	"slices"
	"testing"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
)

// keeps reports whether the planner lets the trial of the newest report train on, if the machines of all reports cost
// $1 an hour and that of the newest costs rate.
func keeps(s groups.Snapshot, rate float64) bool {
	s.Reports = slices.Clone(s.Reports)
	for i := range s.Reports {
		s.Reports[i].Rate = 1
	}
	last := &s.Reports[len(s.Reports)-1]
	last.Rate = rate
	return !slices.ContainsFunc(Moves(s), func(v groups.Move) bool {
		return v.Member == last.Trial && (v.Do == groups.Pause || v.Do == groups.Stop)
	})
}

// With the same history, a trial whose machine costs $0.20 now lives wherever the same at $1 lives, and in some places
// where that is paused. A price that does not change changes nothing.
func TestPrices_ATrialOnCheapCapacityLivesLonger(t *testing.T) {
	dear, cheap, same := 0, 0, 0
	for seed := range uint64(5) {
		l := newLab(t, spec("default", func(s *study.Spec) { s.Seed = seed }), 200, 3, seed)
		for len(l.s.Reports) < 45 {
			l.ask()
			if !l.turn() {
				break
			}
			last := l.s.Reports[len(l.s.Reports)-1]
			if len(l.s.Reports) < 15 || last.Phase != "" || last.Bad || l.s.Trials[last.Trial].Phase != groups.Open {
				continue
			}
			at1, at02 := keeps(l.s, 1), keeps(l.s, 0.2)
			if at1 && !at02 {
				t.Errorf("seed %d, report %d: the trial lives at $1 and not at $0.20", seed, len(l.s.Reports))
			}
			if at1 {
				dear++
			}
			if at02 {
				cheap++
			}
			if keeps(l.s, 0) == at1 { // nobody knows the price
				same++
			} else {
				t.Errorf("seed %d, report %d: a constant price changes the decision", seed, len(l.s.Reports))
			}
		}
	}
	t.Logf("of %d decisions, the trial lives in %d at $1 and in %d at $0.20", same, dear, cheap)
	if cheap <= dear {
		t.Errorf("of %d decisions, the trial lives in %d at $1 and in %d at $0.20", same, dear, cheap)
	}
}

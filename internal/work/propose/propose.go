// Package propose says what a group of jobs does next.
package propose

import "scrimp/internal/work/groups"

// MovesAtOnce is how many moves one proposal has at most: the core takes them in one step.
const MovesAtOnce = 64

// Moves are what the group does next, in order; none: it waits. The same snapshot gives the same moves.
func Moves(s groups.Snapshot) []groups.Move {
	switch s.Kind {
	case groups.Array:
		return array(s)
	case groups.Study, groups.Pipeline, groups.Schedule: // their planners are not written yet
	}
	return nil
}

// array starts the members in the order of their indexes, as many at once as the group allows.
func array(s groups.Snapshot) (moves []groups.Move) {
	if s.Began == s.Members && s.Open == 0 {
		return []groups.Move{{Do: groups.Finish, Why: "all_over"}}
	}
	for n := range min(s.Members-s.Began, s.AtOnce-s.Open, MovesAtOnce) {
		moves = append(moves, groups.Move{Do: groups.Start, Member: s.Began + n, Why: "next"})
	}
	return moves
}

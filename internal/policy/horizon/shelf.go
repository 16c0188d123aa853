package horizon

import "time"

// For returns the problem of a job with so much time to its deadline, which is
// looked at every look. Problems of like jobs come out equal, so that they share
// tables: the time is rounded up to one of a ladder whose rungs are an eighth
// apart, the overhead up to the next twentieth of a grid step. Where the grid is
// that of the looks, machines are given back at looks only.
func For(deadline, overhead, look time.Duration, spot, onDemand float64) Problem {
	grid := max(look, time.Second)
	for most := time.Duration(maxSteps); grid*most < deadline || grid*4 < overhead; most = maxSteps / 2 {
		grid *= 2
	}
	steps := 8
	for time.Duration(steps)*grid < deadline {
		steps += max(1, steps/8)
	}
	unit := max(grid/20, 1)
	return Problem{
		Deadline: time.Duration(steps) * grid, Overhead: (overhead + unit - 1) / unit * unit,
		Grid: grid, Spot: spot, OnDemand: onDemand, Whole: grid == look,
	}
}

// maxSteps bounds the work of a table; half of it where the grid is not that of
// the looks anyway.
const maxSteps = 512

// Shelf keeps the solvers of the latest problems. It is a cache of pure results:
// with or without it the verdicts are the same.
type Shelf struct {
	prior Prior
	room  int
	order []Problem // the oldest first
	by    map[Problem]*Solver
}

// NewShelf returns a shelf with room for so many problems, 1 or more.
func NewShelf(prior Prior, room int) *Shelf {
	return &Shelf{prior: prior, room: max(room, 1), by: map[Problem]*Solver{}}
}

// Solver returns the problem's solver.
func (s *Shelf) Solver(p Problem) *Solver {
	if got := s.by[p]; got != nil {
		return got
	}
	if len(s.order) == s.room {
		delete(s.by, s.order[0])
		s.order = append(s.order[:0], s.order[1:]...)
	}
	got := New(p, s.prior)
	s.by[p] = got
	s.order = append(s.order, p)
	return got
}

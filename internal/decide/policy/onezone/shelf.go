package onezone

import (
	"slices"
	"time"

	"scrimp/internal/lib/quantity"
)

// For returns the problem of a job with that much time to its deadline, polled at every look. It rounds, so that
// similar jobs get equal problems and share tables: the time goes up to the next rung of a ladder with rungs an
// eighth apart, and the overhead to the next twentieth of a grid step. If the grid is longer than look, the rungs
// are twice as far apart and the overhead is rounded to a quarter step. If the grid equals look, machines are
// released only at polls.
func For(deadline, overhead, look time.Duration, spot, onDemand float64) Problem {
	grid := max(look, time.Second)
	for most := maxSteps; ; most = maxSteps / 2 {
		if quantity.Times(grid, most) >= deadline && quantity.Times(grid, 4) >= overhead {
			break
		}
		grid *= 2
	}
	steps := 8
	for quantity.Times(grid, steps) < deadline {
		steps += max(1, steps/8)
	}
	if grid != look { // one table for every job with this grid: it serves any shorter time
		steps = maxSteps / 2
	}
	unit := max(grid/4, 1)
	if grid == look {
		unit = max(grid/20, 1)
	}
	return Problem{
		Deadline: time.Duration(steps) * grid, Overhead: (overhead + unit - 1) / unit * unit,
		Grid: grid, Spot: spot, OnDemand: onDemand, Whole: grid == look,
	}
}

// maxSteps bounds the work of a table; half of it applies if the grid is longer than look.
const maxSteps = 512

// Shelf keeps the most recently used solvers. It is a cache of pure results and does not affect verdicts.
type Shelf struct {
	prior Prior
	room  int
	order []*Solver // most recently used last
}

// mostBytes bounds the memory of a shelf's tables, whatever its room: about 130 tables of a job of three days. A
// single solver may take 100 MB.
const mostBytes = 256 << 20

// NewShelf returns a shelf with room for that many problems, at least 1.
func NewShelf(prior Prior, room int) *Shelf {
	return &Shelf{prior: prior, room: max(room, 1)}
}

// Solver returns the problem's solver, which builds missing tables. The least recently used solvers make room for
// it.
func (s *Shelf) Solver(p Problem) *Solver {
	v := s.find(p)
	if v == nil {
		v = New(p, s.prior)
	}
	s.put(v)
	return v
}

// find returns the problem's solver, or nil.
func (s *Shelf) find(p Problem) *Solver {
	for i := len(s.order) - 1; i >= 0; i-- {
		if s.order[i].p == p {
			return s.order[i]
		}
	}
	return nil
}

// put makes v the most recently used solver and evicts the oldest ones to make room.
func (s *Shelf) put(v *Solver) {
	if n := len(s.order); n > 0 && s.order[n-1] == v {
		return
	}
	if i := slices.Index(s.order, v); i >= 0 {
		s.order = slices.Delete(s.order, i, i+1)
	}
	bytes := v.bytes
	keep := len(s.order)
	for keep > 0 && len(s.order)-keep < s.room-1 && bytes+s.order[keep-1].bytes <= mostBytes {
		keep--
		bytes += s.order[keep].bytes
	}
	s.order = append(slices.Delete(s.order, 0, keep), v)
}

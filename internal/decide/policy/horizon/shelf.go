package horizon

import (
	"slices"
	"time"

	"scrimp/internal/lib/quantity"
)

// For returns the problem of a job with so much time to its deadline, which is
// looked at every look. Problems of like jobs come out equal, so that they share
// tables: the time is rounded up to one of a ladder whose rungs are an eighth
// apart (twice where the grid is not that of the looks), the overhead up to the next
// twentieth of a grid step, or quarter where the grid is not that of the looks. Where it
// is, machines are given back at looks only.
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
	if grid != look { // one table for all that have this grid: it serves any shorter time
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

// maxSteps bounds the work of a table; half of it where the grid is not that of
// the looks anyway.
const maxSteps = 512

// Shelf keeps the solvers that were asked for last. It is a cache of pure results:
// with or without it the verdicts are the same.
type Shelf struct {
	prior Prior
	room  int
	order []*Solver // the latest last
}

// mostBytes bounds what the tables of a shelf take, whatever its room: some 130
// tables of a job of three days. One solver alone may take 100 MB.
const mostBytes = 256 << 20

// NewShelf returns a shelf with room for so many problems, 1 or more.
func NewShelf(prior Prior, room int) *Shelf {
	return &Shelf{prior: prior, room: max(room, 1)}
}

// Solver returns the problem's solver, which makes the tables that it lacks. Those that
// were not asked for longest make room for it.
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

// put makes v the newest, and has the oldest make room for it.
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

package budget

import (
	"math"

	"scrimp/internal/money"
)

// Still sums the jobs of a limit that are not over and hold no machine: what they
// hold does not change while they wait, so that each is added once, and taken out
// when it begins or is over. The zero value has none.
type Still struct {
	jobs, asking  int
	held          money.Amount
	millis        int64 // GPU-milliseconds held: whole, so that what was added can be taken out exactly
	open, gpuOpen names
}

// Add adds a job of the limit's scope.
func (s *Still) Add(l Limit, j Job) { s.change(l, j, 1) }

// Remove takes out a job as it was when it was added.
func (s *Still) Remove(l Limit, j Job) { s.change(l, j, -1) }

func (s *Still) change(l Limit, j Job, by int) {
	if j.Asks {
		s.asking += by
		return
	}
	s.jobs += by
	held, millis := j.held(), int64(math.Round(min(max(0, j.GPUMost-j.GPUSpent), maxHours)*3.6e6))
	if by > 0 {
		s.held, s.millis = s.held.Add(held), s.millis+millis
	} else {
		s.held, s.millis = s.held.Sub(held), s.millis-millis
	}
	if !j.Bounded && l.Dollars != nil {
		s.open.change(j.ID, by)
	}
	if !j.GPUBounded && l.GPUHours != nil {
		s.gpuOpen.change(j.ID, by)
	}
}

// Use is what those jobs take of the limit.
func (s *Still) Use() Use {
	return Use{Jobs: s.jobs, Asking: s.asking, Held: s.held, GPUHeld: float64(s.millis) / 3.6e6, Unbounded: s.open.least, GPUOpen: s.gpuOpen.least}
}

// names is a set that knows its least.
type names struct {
	all   map[string]bool
	least string
}

func (n *names) change(name string, by int) {
	switch {
	case by > 0:
		if n.all == nil {
			n.all = map[string]bool{}
		}
		n.all[name] = true
		n.least = smaller(n.least, name)
	case n.all[name]:
		delete(n.all, name)
		if name == n.least {
			n.least = ""
			for other := range n.all { // of whom nobody knows the most: few are let in under a limit
				n.least = smaller(n.least, other)
			}
		}
	}
}

// Folded is b with its jobs summed, so that many more can be weighed one after the other.
func (b Books) Folded() Books {
	v := Books{Limits: b.Limits, Spent: b.Spent, GPUs: b.GPUs, Still: map[string]Use{}}
	for _, l := range b.Limits {
		v.Still[l.Name()] = b.Use(l)
	}
	return v
}

// Take counts a job that is let in, in books that are folded.
func (b Books) Take(j Job) {
	for _, l := range b.Limits {
		if l.Scope.Holds(j.Owner, j.User) {
			u := b.Still[l.Name()]
			u.add(l, j)
			b.Still[l.Name()] = u
		}
	}
}

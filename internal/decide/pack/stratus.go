package pack

import (
	"math"
	"slices"
)

// stratus is the published policy of that name (Chung, Park and Ganger, SoCC'18), which aligns tasks by how long they
// still run: a task goes to a machine whose newest end falls into the same power of two, else to one that ends later,
// else to one that ends earlier. New machines take groups of tasks of falling length. It knows how long tasks run.
type stratus struct{}

func (stratus) Place(v *View) Plan {
	s := NewStatement(v)
	var waiting []int
	for i, t := range v.Tasks {
		if t.On == Waiting {
			waiting = append(waiting, i)
		}
	}
	p := &aligned{Statement: s, closed: make([]bool, len(v.Machines))}
	p.place(waiting)
	for m := 0; m < len(s.machines); m++ {
		if !p.underused(m) {
			continue
		}
		tasks := slices.Clone(s.machines[m].tasks)
		for _, t := range tasks {
			s.Move(t, Waiting)
		}
		p.close(m)
		p.place(tasks)
	}
	return s.Commit()
}

// aligned is a statement of Stratus.
type aligned struct {
	*Statement
	closed []bool // machines that a round has emptied
}

func (p *aligned) close(m int) {
	for len(p.closed) <= m {
		p.closed = append(p.closed, false)
	}
	p.closed[m] = true
}

func (p *aligned) open(m int) bool {
	return (m >= len(p.closed) || !p.closed[m]) && (len(p.machines[m].tasks) > 0 || m < len(p.v.Machines))
}

func (p *aligned) left(t int) float64 { return math.Max(1, p.v.Tasks[t].Oracle.Left) }

func (p *aligned) machineLeft(m int) (left float64) {
	for _, t := range p.machines[m].tasks {
		left = math.Max(left, p.left(t))
	}
	return left
}

// place seats tasks on present machines, and the rest on new ones.
func (p *aligned) place(tasks []int) {
	var rest []int
	for _, t := range tasks {
		if m := p.seat(t); m != Waiting {
			p.Move(t, m)
		} else {
			rest = append(rest, t)
		}
	}
	p.grow(rest)
}

// seat returns the best machine with room: same bin and nearest end, else a later bin, else an earlier one with most room.
func (p *aligned) seat(t int) int {
	bin, left := log2(p.left(t)), p.left(t)
	best := [3]int{Waiting, Waiting, Waiting}
	var score [3]float64
	for m := range p.machines {
		if !p.open(m) || !p.v.Tasks[t].Size.Fits(p.machines[m].room) {
			continue
		}
		end := p.machineLeft(m)
		which, worth := 0, -math.Abs(end-left)
		if b := log2(end); b != bin {
			room := p.machines[m].room
			worth = float64(room[GPU] + room[CPU] + room[Memory])
			which = 1
			if b < bin {
				which = 2
			}
		}
		if best[which] == Waiting || worth > score[which] {
			best[which], score[which] = m, worth
		}
	}
	for _, m := range best {
		if m != Waiting {
			return m
		}
	}
	return Waiting
}

// grow opens machines for groups of one, two, three … tasks, longest first.
func (p *aligned) grow(tasks []int) {
	slices.SortStableFunc(tasks, func(a, b int) int { return -cmp(p.left(a), p.left(b)) })
	for n := 1; len(tasks) > 0; n++ {
		var sum Size
		taken, kind := 0, Waiting
		for taken < n && taken < len(tasks) {
			next := sum.Add(p.v.Tasks[tasks[taken]].Size)
			k := p.efficient(next)
			if k == Waiting {
				break
			}
			sum, kind, taken = next, k, taken+1
		}
		if taken == 0 { // larger than every machine: it waits for ever, and the caller has said so
			tasks = tasks[1:]
			continue
		}
		m := p.Open(kind)
		for _, t := range tasks[:taken] {
			p.Move(t, m)
		}
		tasks = tasks[taken:]
	}
}

// efficient returns the type with the most use of its scarcest resource for a dollar.
func (p *aligned) efficient(s Size) int {
	smallest := p.v.Types[0]
	for _, t := range p.v.Types {
		if t.Price < smallest.Price {
			smallest = t
		}
	}
	best, score := Waiting, 0.0
	for i, t := range p.v.Types {
		if !s.Fits(t.Size) {
			continue
		}
		scarce, share := CPU, -1.0
		for r := range s {
			if t.Size[r] > 0 && float64(s[r])/float64(t.Size[r]) > share {
				scarce, share = r, float64(s[r])/float64(t.Size[r])
			}
		}
		unit := math.Max(1, float64(smallest.Size[scarce]))
		if e := float64(s[scarce]) / unit / hourly(t.Price); best == Waiting || e > score {
			best, score = i, e
		}
	}
	return best
}

// underused reports whether less than half of every resource is used and a round may empty the machine.
func (p *aligned) underused(m int) bool {
	tasks := p.machines[m].tasks
	if !p.open(m) || len(tasks) == 0 || !p.movable(m) {
		return false
	}
	size := p.v.Types[p.machines[m].kind].Size
	for r, room := range p.machines[m].room {
		if 2*(size[r]-room) >= size[r] {
			return false
		}
	}
	c, ok := Cheapest(p.v.Types, p.v.Tasks[tasks[0]].Size)
	return !ok || len(tasks) > 1 || c != p.machines[m].kind
}

// cmp compares numbers as slices.SortFunc wants.
func cmp(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

package scheduler

import (
	"cmp"
	"math"
	"slices"

	"scrimp/internal/decide/pack"
)

// stratus is the published policy of that name (Chung, Park and Ganger, SoCC'18). It aligns tasks by their
// remaining time: a task goes to a machine whose last end is in the same power of two, else to one that ends later,
// else to one that ends earlier. New machines take groups of tasks by decreasing length. It never moves a task, and
// it knows how long tasks run.
type stratus struct{}

func (stratus) Place(v *pack.View) pack.Plan {
	p := &aligned{NewStatement(v)}
	var rest []int
	for i, t := range v.Tasks {
		if t.On != pack.Waiting {
			continue
		}
		if m := p.seat(i); m != pack.Waiting {
			p.Move(i, m)
		} else {
			rest = append(rest, i)
		}
	}
	p.grow(rest)
	return p.Commit()
}

// aligned is a statement of Stratus.
type aligned struct{ *Statement }

func (p *aligned) left(t int) float64 { return math.Max(1, p.v.Tasks[t].Oracle.Left) }

func (p *aligned) machineLeft(m int) (left float64) {
	for _, t := range p.machines[m].tasks {
		left = math.Max(left, p.left(t))
	}
	return left
}

// seat returns the best machine with room: in the same bin with the nearest end, else in a later bin, else in an
// earlier one with the most room.
func (p *aligned) seat(t int) int {
	bin, left := log2(p.left(t)), p.left(t)
	best := [3]int{pack.Waiting, pack.Waiting, pack.Waiting}
	var score [3]float64
	for m := range p.machines {
		if !p.v.Tasks[t].Size.Fits(p.machines[m].room) {
			continue
		}
		end := p.machineLeft(m)
		which, worth := 0, -math.Abs(end-left)
		if b := log2(end); b != bin {
			room := p.machines[m].room
			worth = float64(room[pack.GPU] + room[pack.CPU] + room[pack.Memory])
			which = 1
			if b < bin {
				which = 2
			}
		}
		if best[which] == pack.Waiting || worth > score[which] {
			best[which], score[which] = m, worth
		}
	}
	for _, m := range best {
		if m != pack.Waiting {
			return m
		}
	}
	return pack.Waiting
}

// grow opens machines for groups of one, two, three … tasks, the longest first, each of the cheapest type that
// holds the group.
func (p *aligned) grow(tasks []int) {
	slices.SortStableFunc(tasks, func(a, b int) int { return cmp.Compare(p.left(b), p.left(a)) })
	for n := 1; len(tasks) > 0; n++ {
		var sum pack.Size
		taken, kind := 0, 0
		for taken < n && taken < len(tasks) {
			next := sum.Add(p.v.Tasks[tasks[taken]].Size)
			k, ok := pack.Cheapest(p.v.Types, next)
			if !ok {
				break
			}
			sum, kind, taken = next, k, taken+1
		}
		if taken == 0 { // larger than every machine
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

// log2 returns the integer part of the logarithm of x, at least 0.
func log2(x float64) int { return int(math.Floor(math.Log2(math.Max(1, x)))) }

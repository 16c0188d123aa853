package pack

import (
	"cmp"
	"math"
	"slices"
)

// knapsack finds the set of tasks with the most worth that fits a machine, any number of each class. It is solved exactly
// over two of the resources, which bounds what three of them allow, and by the same search with all three.
type knapsack struct {
	sizes []Size
	unit  Size // the greatest common divisor of each resource over all sizes
}

// mostCells bounds the tables. A machine with more steps is counted in coarser ones, which keeps the bound a bound.
const mostCells = 1 << 17

func newKnapsack(sizes []Size) *knapsack {
	k := &knapsack{sizes: sizes}
	for r := range k.unit {
		for _, s := range sizes {
			k.unit[r] = gcd(k.unit[r], s[r])
		}
		k.unit[r] = max(1, k.unit[r])
	}
	return k
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// plane is the best worth by what is left of two resources.
type plane struct {
	a, b   int   // the resources
	na, nb int64 // steps of each
	ua, ub int64 // units of a step
	best   []float64
}

// solve fills a plane for a machine.
func (k *knapsack) solve(room Size, a, b int, worth []float64) *plane {
	p := &plane{a: a, b: b, ua: k.unit[a], ub: k.unit[b]}
	for (room[a]/p.ua+1)*(room[b]/p.ub+1) > mostCells {
		if room[a]/p.ua > room[b]/p.ub {
			p.ua *= 2
		} else {
			p.ub *= 2
		}
	}
	p.na, p.nb = room[a]/p.ua, room[b]/p.ub
	cells := (p.na + 1) * (p.nb + 1)
	p.best = make([]float64, cells)
	type item struct {
		x, y  int64
		worth float64
	}
	var items []item
	for c, s := range k.sizes {
		if worth[c] > tiny && s.Fits(room) {
			items = append(items, item{s[a] / p.ua, s[b] / p.ub, worth[c]}) // rounded down: still a bound
		}
	}
	if len(items) == 0 {
		return p
	}
	for x := range p.na + 1 {
		for y := range p.nb + 1 {
			at := x*(p.nb+1) + y
			for _, i := range items {
				if i.x > x || i.y > y || i.x == 0 && i.y == 0 {
					continue
				}
				p.best[at] = max(p.best[at], i.worth+p.best[(x-i.x)*(p.nb+1)+y-i.y])
			}
		}
	}
	return p
}

// bound is the most worth that a room could hold.
func (p *plane) bound(room Size) float64 {
	return p.best[min(p.na, room[p.a]/p.ua)*(p.nb+1)+min(p.nb, room[p.b]/p.ub)]
}

// mostNodes bounds a search with all three resources by one plane, and again by two.
const mostNodes = 1000

// search looks for a better set depth first, the most promising class first.
type search struct {
	k      *knapsack
	worth  []float64
	limit  []int // tasks of each class, or nil for any number
	planes []*plane
	nodes  int
	count  []int
	best   []int
	value  float64
}

// best returns the set with the most worth for a room, its worth, and what no set is above. Sets worth at most floor are
// of no interest. With prove it spends more on the bound.
func (k *knapsack) best(room Size, worth []float64, limit []int, floor float64, prove bool) (count []int, value, most float64) {
	s := search{k: k, worth: worth, limit: limit, count: make([]int, len(k.sizes)), value: floor}
	planes := [][2]int{{GPU, CPU}, {GPU, Memory}}
	if prove {
		planes = append(planes, [2]int{CPU, Memory})
	}
	most = math.Inf(1)
	for _, r := range planes {
		p := k.solve(room, r[0], r[1], worth)
		s.planes = append(s.planes, p)
		if most = min(most, p.bound(room)); most <= floor+tiny {
			return s.count, 0, most
		}
		s.nodes = 0
		s.from(room, 0, 0)
		if s.nodes < mostNodes { // nothing was left out
			most = min(most, max(floor, s.value))
			break
		}
	}
	if s.best == nil {
		return s.count, 0, most
	}
	return s.best, s.value, most
}

// from extends a set of a worth by classes from c on.
func (s *search) from(room Size, c int, worth float64) {
	if worth > s.value+tiny {
		s.value, s.best = worth, slices.Clone(s.count)
	}
	type child struct {
		class int
		bound float64
	}
	var list []child
	for ; c < len(s.k.sizes); c++ {
		size := s.k.sizes[c]
		if s.worth[c] <= tiny || !size.Fits(room) || s.limit != nil && s.count[c] >= s.limit[c] {
			continue
		}
		bound := math.Inf(1)
		for _, p := range s.planes {
			bound = min(bound, p.bound(room.Sub(size)))
		}
		list = append(list, child{c, worth + s.worth[c] + bound})
	}
	slices.SortStableFunc(list, func(a, b child) int { return cmp.Compare(b.bound, a.bound) })
	for _, x := range list {
		if x.bound <= s.value+tiny || s.nodes >= mostNodes {
			return
		}
		s.nodes++
		s.count[x.class]++
		s.from(room.Sub(s.k.sizes[x.class]), x.class, worth+s.worth[x.class])
		s.count[x.class]--
	}
}

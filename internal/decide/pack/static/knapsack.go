package static

import (
	"cmp"
	"math"
	"slices"

	"scrimp/internal/decide/pack"
	"scrimp/internal/decide/pack/simplex"
)

// knapsack finds the most valuable set of tasks that fits a machine, by a search with upper bounds from tables over
// fewer resources.
type knapsack struct {
	sizes []pack.Size
}

const (
	// mostCells bounds a table. A larger machine is counted in coarser steps, which keeps the bound valid.
	mostCells = 1 << 20
	fewCells  = 1 << 11
	// mostNodes bounds a search, once per table.
	mostNodes = 300
)

// table is the highest worth by the remaining amounts of some resources.
type table struct {
	unit pack.Size // of one step
	n    [pack.Resources]int64
	best []float64
	// open is set if a task takes no step of any resource, so that the table bounds nothing.
	open bool
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// steps chooses the step sizes of a table: the greatest common divisor of the sizes that fit, or coarser.
func (k *knapsack) steps(room pack.Size, over []int, limit float64) (unit pack.Size) {
	for r := range unit {
		if !slices.Contains(over, r) {
			unit[r] = room[r] + 1
			continue
		}
		for _, s := range k.sizes {
			if s.Fits(room) {
				unit[r] = gcd(unit[r], s[r])
			}
		}
		unit[r] = max(1, unit[r])
	}
	for {
		cells, widest := 1.0, 0
		for r := range unit {
			cells *= float64(room[r]/unit[r] + 1)
			if room[r]/unit[r] > room[widest]/unit[widest] {
				widest = r
			}
		}
		if cells <= limit {
			return unit
		}
		unit[widest] *= 2
	}
}

// solve fills a table for a machine.
func (k *knapsack) solve(room pack.Size, worth []float64, over ...int) *table {
	limit := float64(mostCells)
	if len(over) < pack.Resources {
		limit = fewCells
	}
	t := &table{unit: k.steps(room, over, limit)}
	cells := int64(1)
	for r := range t.n {
		t.n[r] = room[r] / t.unit[r]
		cells *= t.n[r] + 1
	}
	t.best = make([]float64, cells)
	type item struct {
		take  [pack.Resources]int64
		back  int64 // cells from the room before to the room after
		worth float64
	}
	var items []item
	for c, s := range k.sizes {
		if worth[c] <= simplex.Tiny || !s.Fits(room) {
			continue
		}
		i := item{worth: worth[c]}
		for r := range s {
			i.take[r] = s[r] / t.unit[r] // rounded down: the bound stays valid
		}
		if i.back = t.cell(i.take); i.back == 0 {
			t.open = true
			return t
		}
		items = append(items, i)
	}
	at := int64(0)
	for x := range t.n[0] + 1 {
		for y := range t.n[1] + 1 {
			for z := range t.n[2] + 1 {
				best := 0.0
				for q := range items {
					if i := &items[q]; i.take[0] <= x && i.take[1] <= y && i.take[2] <= z {
						best = max(best, i.worth+t.best[at-i.back])
					}
				}
				t.best[at] = best
				at++
			}
		}
	}
	return t
}

func (t *table) cell(n [pack.Resources]int64) int64 { return (n[0]*(t.n[1]+1)+n[1])*(t.n[2]+1) + n[2] }

// bound is the highest worth that a room could hold.
func (t *table) bound(room pack.Size) float64 {
	if t.open {
		return math.Inf(1)
	}
	var n [pack.Resources]int64
	for r := range n {
		n[r] = min(t.n[r], room[r]/t.unit[r])
	}
	return t.best[t.cell(n)]
}

// search looks for a better set depth-first, the most promising class first.
type search struct {
	k      *knapsack
	worth  []float64
	limit  []int // tasks of each class, or nil for any number
	tables []*table
	nodes  int
	count  []int
	best   []int
	value  float64
}

// best returns the most valuable set for a room, its worth, and an upper bound on the worth of any set. It ignores
// sets worth at most floor. With prove it spends more time on the bound.
func (k *knapsack) best(room pack.Size, worth []float64, limit []int, floor float64, prove bool) (count []int,
	value, most float64) {
	s := search{k: k, worth: worth, limit: limit, count: make([]int, len(k.sizes)), value: floor}
	tables := [][]int{{pack.GPU, pack.CPU}, {pack.GPU, pack.Memory}}
	if prove {
		tables = append(tables, []int{pack.GPU, pack.CPU, pack.Memory})
	}
	most = math.Inf(1)
	for _, over := range tables {
		t := k.solve(room, worth, over...)
		s.tables = append(s.tables, t)
		if most = min(most, t.bound(room)); most <= floor+simplex.Tiny {
			return s.count, 0, most
		}
		s.nodes = 0
		s.from(room, 0, 0)
		if s.nodes < mostNodes { // the search was complete
			most = min(most, max(floor, s.value))
			break
		}
	}
	if s.best == nil {
		return s.count, 0, most
	}
	return s.best, s.value, most
}

// from extends a set of the given worth by classes from c on.
func (s *search) from(room pack.Size, c int, worth float64) {
	if worth > s.value+simplex.Tiny {
		s.value, s.best = worth, slices.Clone(s.count)
	}
	type child struct {
		class int
		bound float64
	}
	var list []child
	for ; c < len(s.k.sizes); c++ {
		size := s.k.sizes[c]
		if s.worth[c] <= simplex.Tiny || !size.Fits(room) || s.limit != nil && s.count[c] >= s.limit[c] {
			continue
		}
		bound := math.Inf(1)
		for _, t := range s.tables {
			bound = min(bound, t.bound(room.Sub(size)))
		}
		list = append(list, child{c, nearest(worth + s.worth[c] + bound)})
	}
	slices.SortStableFunc(list, func(a, b child) int { return cmp.Compare(b.bound, a.bound) })
	for _, x := range list {
		if x.bound <= s.value+1e-6 || s.nodes >= mostNodes {
			return
		}
		s.nodes++
		s.count[x.class]++
		s.from(room.Sub(s.k.sizes[x.class]), x.class, worth+s.worth[x.class])
		s.count[x.class]--
	}
}

// nearest rounds a worth, so that sums of the same numbers in any order are equal and the first class wins.
func nearest(v float64) float64 { return math.Round(v*1e7) / 1e7 }

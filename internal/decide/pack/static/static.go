// Package static packs a list of tasks onto new machines all at once, and bounds the price of any such packing.
package static

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/pack"
	"scrimp/internal/decide/pack/simplex"
	"scrimp/internal/lib/money"
)

// Bin is a machine with its tasks, in a packing of all tasks at once.
type Bin struct {
	Type  int
	Tasks []int // indices into the list of sizes
}

// Packing is an assignment of tasks to machines, and a lower bound on the price of any.
type Packing struct {
	Bins  []Bin
	Bound float64 // dollars per hour: the optimum of the linear program
}

// Cost is the hourly cost of the machines.
func (p Packing) Cost(types []pack.Type) (sum money.Amount) {
	for _, b := range p.Bins {
		sum = sum.Add(types[b.Type].Price.Until(time.Hour))
	}
	return sum
}

// closeEnough ends the search for columns once the mix is within this share of the bound.
const closeEnough = 1e-4

// Pack packs tasks onto new machines at the lowest total price that it finds: by column generation over the sets
// of tasks that fit a machine (Gilmore and Gomory), whose optimum is the bound, and by rounding the resulting mix.
// It omits tasks that fit no machine.
func Pack(types []pack.Type, sizes []pack.Size) Packing {
	unit, exact := coarse(sizes)
	s := newStatic(types, sizes, unit, true)
	if len(s.sizes) == 0 {
		return Packing{}
	}
	bound := s.generate(s.begin(), false)
	if !exact { // tasks that are rounded down need no more than in reality
		low := newStatic(types, sizes, unit, false)
		bound = low.generate(low.begin(), false)
	}
	s.dive()
	s.merge()
	return Packing{Bins: s.bins, Bound: bound}
}

// mostRows bounds the distinct sizes in a linear program, because its time grows with the cube. With more sizes,
// coarser units are used.
const mostRows = 160

// coarse returns units that give few enough sizes, and whether they are exact.
func coarse(sizes []pack.Size) (unit pack.Size, exact bool) {
	unit, exact = pack.Size{1, 1, 1}, true
	for {
		rows := map[pack.Size]bool{}
		var values [pack.Resources]map[int64]bool
		for r := range values {
			values[r] = map[int64]bool{}
		}
		for _, size := range sizes {
			size = rounded(size, unit, true)
			rows[size] = true
			for r, n := range size {
				values[r][n] = true
			}
		}
		if len(rows) <= mostRows {
			return unit, exact
		}
		widest := 0
		for r := range values {
			if len(values[r]) > len(values[widest]) {
				widest = r
			}
		}
		unit[widest] *= 2
		exact = false
	}
}

// rounded returns a size in whole units.
func rounded(s, unit pack.Size, up bool) pack.Size {
	for r := range s {
		if up {
			s[r] += unit[r] - 1
		}
		s[r] -= s[r] % unit[r]
	}
	return s
}

// static is a packing in progress. Tasks of one size share a row.
type static struct {
	types []pack.Type
	large []int       // types that the linear program needs
	all   []pack.Size // of the tasks
	sizes []pack.Size // of the rows
	left  [][]int     // tasks of each row without a machine
	sack  *knapsack
	m     *simplex.Program
	bins  []Bin
}

func newStatic(types []pack.Type, sizes []pack.Size, unit pack.Size, up bool) *static {
	s := &static{types: types, large: irreducible(types), all: sizes}
	row := map[pack.Size]int{}
	for i, size := range sizes {
		if _, ok := pack.Cheapest(types, size); !ok {
			continue
		}
		if r := rounded(size, unit, up); fits(types, r) {
			size = r
		}
		r, known := row[size]
		if !known {
			r = len(s.sizes)
			row[size] = r
			s.sizes, s.left = append(s.sizes, size), append(s.left, nil)
		}
		s.left[r] = append(s.left[r], i)
	}
	s.sack = &knapsack{sizes: s.sizes}
	return s
}

// fits reports whether any type is large enough.
func fits(types []pack.Type, s pack.Size) bool {
	_, ok := pack.Cheapest(types, s)
	return ok
}

// irreducible lists the types that no larger type replaces by combining q such machines for q prices. The linear
// program can do without the others, because it may use a fraction of a machine.
func irreducible(types []pack.Type) (list []int) {
	for i, a := range types {
		redundant := slices.ContainsFunc(types, func(b pack.Type) bool {
			q := int64(b.Price / max(1, a.Price))
			if q < 2 || b.Price > a.Price*2000 {
				return q >= 1 && b.Price <= a.Price && b.Name != a.Name && a.Size.Fits(b.Size) && b.Size != a.Size
			}
			return int64(b.Price) <= q*int64(a.Price) && pack.Size{a.Size[0] * q, a.Size[1] * q, a.Size[2] * q}.Fits(b.Size)
		})
		if !redundant {
			list = append(list, i)
		}
	}
	return list
}

// start builds a linear program for the remaining tasks, with the columns of the last one, translated to the new
// rows.
func (s *static) start(rows, old []int, columns []simplex.Column) {
	want := make([]float64, len(rows))
	place := make([]int, len(s.sizes))
	for i := range place {
		place[i] = -1
	}
	for i, r := range rows {
		want[i], place[r] = float64(len(s.left[r])), i
	}
	s.m = simplex.New(want, func(i int) simplex.Column {
		c, _ := pack.Cheapest(s.types, s.sizes[rows[i]])
		return s.column(c, []int{i}, []int{1})
	})
	for _, c := range columns {
		var at, n []int
		var sum pack.Size
		for i, r := range c.Rows {
			if p := place[old[r]]; p >= 0 {
				q := min(c.Count[i], len(s.left[old[r]]))
				at, n = append(at, p), append(n, q)
				for range q {
					sum = sum.Add(s.sizes[old[r]])
				}
			}
		}
		if len(at) > 0 {
			kind, _ := pack.Cheapest(s.types, sum)
			s.m.Columns = append(s.m.Columns, s.column(kind, at, n))
		}
	}
}

func (s *static) column(kind int, rows, count []int) simplex.Column {
	c := simplex.Column{Cost: pack.Hourly(s.types[kind].Price), Rows: rows, Count: count, Kind: kind}
	for _, n := range count {
		c.Parts = append(c.Parts, float64(n))
	}
	return c
}

// generate adds columns until none makes the mix cheaper, and returns the bound. With limited, no column has more
// tasks of a row than remain.
func (s *static) generate(rows []int, limited bool) (bound float64) {
	worth := make([]float64, len(s.sizes))
	var limit []int
	if limited {
		limit = make([]int, len(s.sizes))
		for _, r := range rows {
			limit[r] = len(s.left[r])
		}
	}
	place := make([]int, len(s.sizes))
	prove := false
	for range 20 * (len(rows) + 10) {
		s.m.Solve()
		clear(worth)
		for i, r := range rows {
			worth[r], place[r] = s.m.Price[i], i
		}
		scale, found := 1.0, false
		for _, kind := range s.large {
			price := pack.Hourly(s.types[kind].Price)
			count, value, most := s.sack.best(s.types[kind].Size, worth, limit, price, prove)
			scale = min(scale, price/max(price, most))
			if value > price*(1+closeEnough) {
				var at, n []int
				for r, q := range count {
					if q > 0 {
						at, n = append(at, place[r]), append(n, q)
					}
				}
				s.m.Columns = append(s.m.Columns, s.column(kind, at, n))
				found = true
			}
		}
		// Duals scaled down until no set is worth more than its machine are a solution of the dual program (Farley).
		value := s.m.Value()
		bound = max(bound, value*scale)
		switch {
		case value-bound < closeEnough*value || !found && (prove || limited):
			return bound
		case !found:
			prove = true
		}
	}
	return bound
}

// few is the number of remaining tasks below which every type is considered, because whole small machines beat a
// fraction of a large one.
const few = 150

// begin starts the linear program of all tasks, and returns its rows.
func (s *static) begin() (rows []int) {
	for i := range s.sizes {
		rows = append(rows, i)
	}
	s.start(rows, nil, nil)
	return rows
}

// dive rounds the mix: whole machines first, else the column nearest to a whole one. It then solves again for the
// rest.
func (s *static) dive() {
	var rows []int
	for i := range s.sizes {
		rows = append(rows, i)
	}
	s.take(rows, false)
	for {
		columns, old := s.m.Columns, slices.Clone(rows)
		rows = slices.DeleteFunc(rows, func(r int) bool { return len(s.left[r]) == 0 })
		if len(rows) == 0 {
			return
		}
		left := 0
		for _, r := range rows {
			left += len(s.left[r])
		}
		if left <= few && len(s.large) < len(s.types) {
			s.large = s.large[:0]
			for i := range s.types {
				s.large = append(s.large, i)
			}
		}
		s.start(rows, old, columns)
		s.generate(rows, true)
		s.take(rows, true)
	}
}

// take rounds columns of the basis down and assigns tasks to their machines. If that assigns none and always is
// set, it rounds one up.
func (s *static) take(rows []int, always bool) {
	most, near := 0.0, -1
	whole := false
	for i, b := range s.m.Basis {
		if b < 0 || s.m.X[i] < simplex.Tiny {
			continue
		}
		n := math.Floor(s.m.X[i] + 1e-6)
		for range int(n) {
			s.open(rows, &s.m.Columns[b])
			whole = true
		}
		if x := s.m.X[i] - n; x > most {
			most, near = x, b
		}
	}
	if always && !whole && near >= 0 {
		s.open(rows, &s.m.Columns[near])
	}
}

// open assigns the remaining tasks of a column to a machine of the cheapest type that holds them.
func (s *static) open(rows []int, c *simplex.Column) {
	var tasks []int
	var sum pack.Size
	for i, r := range c.Rows {
		list := &s.left[rows[r]]
		n := min(c.Count[i], len(*list))
		tasks = append(tasks, (*list)[:n]...)
		*list = (*list)[n:]
	}
	for _, t := range tasks {
		sum = sum.Add(s.all[t])
	}
	if len(tasks) == 0 {
		return
	}
	if kind, ok := pack.Cheapest(s.types, sum); ok {
		s.bins = append(s.bins, Bin{Type: kind, Tasks: tasks})
	}
}

// mostMerged bounds the number of machines tried in pairs.
const mostMerged = 300

// merge combines the tasks of two machines on one if that is cheaper. Rounding leaves such pairs among the last
// machines.
func (s *static) merge() {
	sum := make([]pack.Size, len(s.bins))
	for i, b := range s.bins {
		for _, t := range b.Tasks {
			sum[i] = sum[i].Add(s.all[t])
		}
	}
	for i := max(0, len(s.bins)-mostMerged); i < len(s.bins); i++ {
		for j := i + 1; j < len(s.bins); j++ {
			a, b := &s.bins[i], s.bins[j]
			kind, ok := pack.Cheapest(s.types, sum[i].Add(sum[j]))
			if !ok || s.types[kind].Price >= s.types[a.Type].Price+s.types[b.Type].Price {
				continue
			}
			a.Type, a.Tasks = kind, append(a.Tasks, b.Tasks...)
			sum[i] = sum[i].Add(sum[j])
			s.bins, sum = slices.Delete(s.bins, j, j+1), slices.Delete(sum, j, j+1)
			j = i // the larger machine may take others that came before
		}
	}
}

package onezone

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/market"
)

// Problem is what tables are built for. Jobs with equal problems share tables, which serve any amount of work and
// any time up to Deadline.
type Problem struct {
	// Deadline is the longest time to a deadline in a query.
	Deadline time.Duration `json:"deadline_ns"`
	// Overhead is the time that taking a machine costs: boot, restore, lost work.
	Overhead time.Duration `json:"overhead_ns"`
	Grid     time.Duration `json:"grid_ns"`  // time between two decisions
	Spot     float64       `json:"spot_usd"` // per hour, a statistic
	OnDemand float64       `json:"on_demand_usd"`
	// Whole is set if machines are paid for whole grid steps, including the one in which the work ends.
	Whole bool `json:"whole,omitempty"`
}

// Held is the kind of capacity that the job holds.
type Held = market.Choice

// Kinds of capacity. None means to wait.
const (
	None     = market.ChoiceNone
	Spot     = market.ChoiceSpot
	OnDemand = market.ChoiceOnDemand
)

// ages are the age buckets of a period, in steps: fine where the hazard falls quickly. A bucket extends to the next
// one.
var ages = []int{1, 2, 3, 4, 5, 7, 10, 14, 20, 32, 50, 80, 130}

func bucket(age int) int {
	b := len(ages) - 1
	for b > 0 && ages[b] > age {
		b--
	}
	return b
}

// shape is what all tables of a problem share: the slack grid, and how a decreased slack maps between its points.
type shape struct {
	steps    int       // steps to the deadline
	over     float64   // overhead in steps
	owed     []float64 // overhead owed by a held machine at the start of a step, by state; the first is 0
	next     []int     // following state
	first    int       // state after the step in which a machine is taken
	slack    []float64 // grid points in steps
	wait     shift
	taken    shift
	serve    []shift // by state
	spot     float64 // dollars per step
	onDemand float64
	whole    bool
	ends     []edge // by steps to the deadline
	holds    int    // number of columns of an up state
}

type shift struct {
	by    float64
	index []int32
	part  []float32
}

func newShape(p Problem) *shape {
	g := &shape{steps: int(p.Deadline / p.Grid), over: float64(p.Overhead) / float64(p.Grid)}
	g.spot, g.onDemand = p.Spot*p.Grid.Hours(), p.OnDemand*p.Grid.Hours()
	g.whole = p.Whole
	g.owed = []float64{0}
	for o := g.over - 1; o > 1e-9; o-- {
		g.owed = append(g.owed, o)
	}
	// owed[1] is the largest; it shrinks along the list and ends at owed[0].
	n := len(g.owed)
	g.next = make([]int, n)
	for i := 1; i < n; i++ {
		g.next[i] = (i + 1) % n
	}
	if n > 1 {
		g.first = 1
	}
	// The grid is a tenth of a step near the guard, and wider further up.
	const fine = 0.1
	for s := 0.0; s < g.over+4; s = float64(len(g.slack)) * fine {
		g.slack = append(g.slack, s)
	}
	for s := g.slack[len(g.slack)-1] + fine; ; s += max(fine, 0.12*s) {
		g.slack = append(g.slack, s)
		if s > float64(g.steps) {
			break
		}
	}
	for m := range g.steps + stride + 1 {
		g.ends = append(g.ends, g.edge(m))
	}
	g.wait, g.taken = g.shift(1), g.shift(min(g.over, 1))
	for _, o := range g.owed {
		g.serve = append(g.serve, g.shift(min(o, 1)))
	}
	g.holds = 1 + 2*n
	return g
}

func (g *shape) find(s float64) (int32, float32) {
	if s <= 0 {
		return 0, 0
	}
	lo, hi := 0, len(g.slack)-1
	if s >= g.slack[hi] {
		return int32(hi - 1), 1
	}
	for hi-lo > 1 {
		m := (lo + hi) / 2
		if g.slack[m] <= s {
			lo = m
		} else {
			hi = m
		}
	}
	part := (s - g.slack[lo]) / (g.slack[hi] - g.slack[lo])
	return int32(lo), float32(math.Round(part*1024) / 1024)
}

func (g *shape) shift(by float64) shift {
	s := shift{by: by}
	for _, x := range g.slack {
		i, p := g.find(x - by)
		s.index, s.part = append(s.index, i), append(s.part, p)
	}
	return s
}

// column numbers what is held: 0 for nothing, then spot by what it owes, then on-demand.
func (g *shape) column(h Held, state int) int {
	switch h {
	case None:
	case Spot:
		return 1 + state
	case OnDemand:
		return 1 + len(g.owed) + state
	}
	return 0
}

// guarded reports whether that little slack, in steps, leaves only on-demand, or live spot that owes nothing. A
// step lost here cannot be recovered.
func (g *shape) guarded(slack float64) bool { return slack < g.over+1-1e-9 }

// Table is the expected remaining cost in dollars, for one problem and one pair of offsets.
type Table struct {
	g     *shape
	up    []float64 // probability that a period with spot ends within a step, by bucket
	gap   []float64
	value [][]float32 // by stored level: [market][column][slack]
}

// near is the number of steps before the deadline that a table stores one by one. Further away it stores every
// sixteenth and interpolates linearly.
const (
	near   = 32
	stride = 16
)

// kept returns the stored level at or below m, its index, and the next stored level above.
func kept(m int) (low, index, high int) {
	if m < near {
		return m, m, m + 1
	}
	k := (m - near) / stride
	return near + stride*k, near + k, near + stride*(k+1)
}

func (t *Table) at(market, column int) int {
	return (market*t.g.holds + column) * len(t.g.slack)
}

func solve(g *shape, grid time.Duration, prior Prior, up, gap float64) *Table {
	t := &Table{g: g}
	for i, a := range ages {
		// The middle of the bucket, in half steps.
		twice := 4 * a / 3 * 2
		if i+1 < len(ages) {
			twice = a + ages[i+1] - 1
		}
		age := time.Duration(twice-2) * grid / 2
		t.up = append(t.up, prior.Up.Ends(up, age, grid))
		t.gap = append(t.gap, prior.Gap.Ends(gap, age, grid))
	}
	n, S := len(ages), len(g.slack)
	size := 2 * n * g.holds * S
	mean := make([]float32, size)
	last, out := make([]float32, size), make([]float32, size)
	l := newLevel(g)
	for m := 0; ; m++ {
		if low, _, _ := kept(m); low == m {
			t.value = append(t.value, slices.Clone(last))
			if m >= g.steps {
				return t
			}
		}
		t.expect(last, mean)
		l.set(m + 1)
		for market := range 2 * n {
			l.fill(t, market, mean, out)
		}
		last, out = out, last
	}
}

// expect fills mean with the value at the start of the next step, by the market and what is held at the end of this
// one.
func (t *Table) expect(v, mean []float32) {
	g, n, S := t.g, len(ages), len(t.g.slack)
	for b := range n {
		move := float32(0)
		if b+1 < n {
			move = 1 / float32(ages[b+1]-ages[b])
		}
		for c := range g.holds {
			lost := c
			if c >= 1 && c <= len(g.owed) {
				lost = 0
			}
			h := float32(t.up[b])
			stay, on, end := (1-h)*(1-move), (1-h)*move, h
			a, d := v[t.at(b, c):][:S], v[t.at(n, lost):][:S]
			x := v[t.at(min(b+1, n-1), c):][:S]
			to := mean[t.at(b, c):][:S]
			for s := range to {
				to[s] = float32(stay*a[s]) + float32(on*x[s]) + float32(end*d[s])
			}
			if lost != c {
				continue
			}
			h = float32(t.gap[b])
			stay, on, end = (1-h)*(1-move), (1-h)*move, h
			a, d = v[t.at(n+b, c):][:S], v[t.at(0, c):][:S]
			x = v[t.at(n+min(b+1, n-1), c):][:S]
			to = mean[t.at(n+b, c):][:S]
			for s := range to {
				to[s] = float32(stay*a[s]) + float32(on*x[s]) + float32(end*d[s])
			}
		}
	}
}

// level fills the rows of a table at one number of steps to the deadline. The cost of taking a machine, or none, is
// the same whatever is held, so it is computed once per market.
type level struct {
	g    *shape
	e    edge
	work []float64 // remaining work, by slack, in steps
	// points is the number of slacks with work left, and free the index of the first that leaves a choice.
	points, free              int
	onDemand, spot, none, own []float32
}

func newLevel(g *shape) *level {
	row := func() []float32 { return make([]float32, len(g.slack)) }
	return &level{g: g, work: make([]float64, len(g.slack)), onDemand: row(), spot: row(), none: row(), own: row()}
}

// set makes l the level m steps from the deadline.
func (l *level) set(m int) {
	l.e, l.points, l.free = l.g.ends[m-1], 0, 0
	for s, slack := range l.g.slack {
		w := float64(m) - slack
		l.work[s] = max(w, 1e-6)
		l.points = s + 1
		if l.g.guarded(min(slack, float64(m)-1e-6)) {
			l.free = s + 1
		}
		// The first point past the end of the work stands for the smallest amount of work. Values before it are
		// interpolated between it and the point below.
		if w <= 1e-9 {
			return
		}
	}
}

// fill fills the rows of a market with the cheapest choice, by what is held and slack.
func (l *level) fill(t *Table, market int, mean, out []float32) {
	g, S := l.g, len(l.g.slack)
	after := func(h Held, next int) []float32 { return mean[t.at(market, g.column(h, next)):][:S] }
	onDemandPrice, spotPrice := float32(g.onDemand), float32(g.spot)
	forSale := market < len(ages)
	l.run(l.onDemand, &g.taken, after(OnDemand, g.first), onDemandPrice)
	if forSale {
		l.run(l.spot, &g.taken, after(Spot, g.first), spotPrice)
	}
	none := after(None, 0)
	for s := l.free; s < l.points; s++ {
		l.none[s] = l.e.mix(none, g.wait.index[s], g.wait.part[s])
	}
	l.cheapest(out[t.at(market, 0):][:S], l.onDemand, l.spot, forSale, false)
	for state := range g.owed {
		if forSale { // no spot can be held without a market
			l.run(l.own, &g.serve[state], after(Spot, g.next[state]), spotPrice)
			l.cheapest(out[t.at(market, g.column(Spot, state)):][:S], l.onDemand, l.own, true, state == 0)
		}
		l.run(l.own, &g.serve[state], after(OnDemand, g.next[state]), onDemandPrice)
		l.cheapest(out[t.at(market, g.column(OnDemand, state)):][:S], l.own, l.spot, forSale, false)
	}
}

// run fills to with the cost of a step on a machine and all that follows, by slack.
func (l *level) run(to []float32, by *shift, mean []float32, price float32) {
	for s, w := range l.work[:l.points] {
		switch {
		case w > 1-by.by+1e-9:
			to[s] = price + l.e.mix(mean, by.index[s], by.part[s])
		case l.e.whole:
			to[s] = price
		default:
			to[s] = float32(price * float32(w+by.by))
		}
	}
}

// cheapest fills to with the cheapest choice that the guard allows. lives says that spot is held and owes nothing,
// which the guard allows to keep.
func (l *level) cheapest(to, onDemand, spot []float32, forSale, lives bool) {
	copy(to, onDemand[:l.points])
	if forSale {
		from := l.free
		if lives {
			from = 0
		}
		for s := from; s < l.points; s++ {
			to[s] = min(to[s], spot[s])
		}
	}
	for s := l.free; s < l.points; s++ {
		to[s] = min(to[s], l.none[s])
	}
	for s := l.points; s < len(to); s++ {
		to[s] = to[l.points-1]
	}
}

// edge is the pair of grid points between which the work ends at some number of steps to the deadline. The upper
// one stands for the smallest amount of work, wherever it lies.
type edge struct {
	index int32
	wider float32 // distance between the two points, relative to that of the lower one to the end
	whole bool    // the last step is paid in full
}

func (g *shape) edge(m int) edge {
	i, _ := g.find(float64(m) - 1e-9)
	wide := (g.slack[i+1] - g.slack[i]) / max(float64(m)-g.slack[i], 1e-9)
	return edge{index: i, wider: float32(math.Round(min(wide, 1e6)*1024) / 1024), whole: g.whole}
}

// mix interpolates between point i and the next.
func (e edge) mix(v []float32, i int32, part float32) float32 {
	if i == e.index {
		part = min(part*e.wider, 1)
	}
	return v[i] + float32(part*(v[i+1]-v[i]))
}

// lookup returns the value at m steps to the deadline and a slack in steps.
func (t *Table) lookup(m, market, c int, slack float64) float64 {
	if float64(m)-slack <= 1e-9 || m <= 0 {
		return 0
	}
	low, k, high := kept(m)
	at := t.at(market, c)
	i, p := t.g.find(slack)
	x := float64(t.g.ends[low].mix(t.value[k][at:], i, p))
	if low == m || k+1 >= len(t.value) {
		return x
	}
	y := float64(t.g.ends[high].mix(t.value[k+1][at:], i, p))
	// At the lower level the work may already have ended.
	from := max(float64(low), slack)
	return x + float64((y-x)*(float64(m)-from)/(float64(high)-from))
}

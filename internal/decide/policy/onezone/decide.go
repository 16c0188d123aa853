package onezone

import (
	"math"
	"time"
)

// State is the input of a decision.
type State struct {
	Until  time.Duration // to the deadline
	Left   time.Duration // remaining useful work, positive
	Held   Held
	Owed   time.Duration // overhead that the held machine still has to serve
	Market Market        // spot
}

// Verdict is a choice with the expected cost in dollars of each choice. An impossible choice costs infinitely much.
type Verdict struct {
	Choice Held
	USD    [3]float64 // by Held
	Lasts  float64    // probability that the market stays as it is until the next decision
	Hour   float64    // probability that it does so for an hour
}

// Tables exist for offsets half a logarithm apart. Between them the dollars are interpolated linearly.
const (
	offsets = 7
	apart   = 0.5
)

// Solver holds the tables of one problem and builds them when they are first needed.
type Solver struct {
	p      Problem
	prior  Prior
	g      *shape
	tables [offsets][offsets]*Table
	Made   int // number of tables solved
	bytes  int // their memory
}

// New returns a solver without tables.
func New(p Problem, prior Prior) *Solver {
	return &Solver{p: p, prior: prior, g: newShape(p)}
}

// between returns the index of the table below an offset and the fraction of the way to the next.
func between(offset float64) (int, float64) {
	x := offset/apart + (offsets-1)/2
	x = min(max(x, 0), offsets-1)
	i := min(int(x), offsets-2)
	return i, x - float64(i)
}

func (v *Solver) table(i, j int) *Table {
	if v.tables[i][j] == nil {
		v.tables[i][j] = solveAt(v.g, v.p, v.prior, i, j)
		v.Made++
		v.bytes += v.tables[i][j].bytes()
	}
	return v.tables[i][j]
}

// solveAt builds the table for two offsets, given by index.
func solveAt(g *shape, p Problem, prior Prior, i, j int) *Table {
	const middle = (offsets - 1) / 2
	return solve(g, p.Grid, prior, apart*float64(i-middle), apart*float64(j-middle))
}

// bytes is the memory of the table.
func (t *Table) bytes() int {
	n := 0
	for _, level := range t.value {
		n += 4 * len(level)
	}
	return n
}

// Decide returns the cheapest choice. Among equal ones it prefers what is held.
func (v *Solver) Decide(s State) Verdict {
	up, gap := v.prior.offsets(&s.Market)
	var ends float64
	if s.Market.Up {
		ends = v.prior.Up.Ends(up, s.Market.Age, v.p.Grid)
	} else {
		ends = v.prior.Gap.Ends(gap, s.Market.Age, v.p.Grid)
	}
	i, x := between(up)
	j, y := between(gap)
	var out Verdict
	for _, c := range corners(i, j, x, y) {
		if c.w == 0 {
			continue
		}
		q := v.weigh(v.table(c.i, c.j), s, ends)
		for k := range q {
			out.USD[k] += float64(c.w * q[k])
		}
	}
	out.Choice = s.Held
	for k := range out.USD {
		if out.USD[k] < out.USD[out.Choice]-1e-9 {
			out.Choice = Held(k)
		}
	}
	out.Lasts = 1 - ends
	if s.Market.Up {
		out.Hour = v.prior.Up.stays(up, s.Market.Age, v.p.Grid)
	} else {
		out.Hour = v.prior.Gap.stays(gap, s.Market.Age, v.p.Grid)
	}
	return out
}

// weigh interpolates between the whole numbers of steps to the deadline below and above. If the guard applies at
// the lower number, only that one counts.
func (v *Solver) weigh(t *Table, s State, ends float64) [3]float64 {
	part := s.Until % v.p.Grid
	s.Until -= part
	low := v.ask(t, s, ends)
	if part <= 0 || math.IsInf(low[None], 1) || int(s.Until/v.p.Grid) >= v.g.steps {
		return low
	}
	s.Until += v.p.Grid
	high := v.ask(t, s, ends)
	f := float64(part) / float64(v.p.Grid)
	for k := range low {
		if !math.IsInf(low[k], 1) {
			low[k] += float64(f * (high[k] - low[k]))
		}
	}
	return low
}

// ask computes one step of the decision process from the exact state.
func (v *Solver) ask(t *Table, s State, ends float64) [3]float64 {
	g := v.g
	unit := float64(v.p.Grid)
	m := min(int(s.Until/v.p.Grid), g.steps)
	left := float64(s.Left) / unit
	slack := float64(s.Until/v.p.Grid) - left
	n := len(ages)
	k := int(s.Market.Age/v.p.Grid) + 1
	next := bucket(k + 1)
	value := func(c int, slack float64) float64 {
		lost := c
		if s.Market.Up {
			if c >= 1 && c <= len(g.owed) {
				lost = 0
			}
			return float64((1-ends)*t.lookup(m-1, next, c, slack)) + float64(ends*t.lookup(m-1, n, lost, slack))
		}
		return float64((1-ends)*t.lookup(m-1, n+next, c, slack)) + float64(ends*t.lookup(m-1, 0, c, slack))
	}
	run := func(h Held, price float64) float64 {
		owed := g.over
		if h == s.Held {
			owed = float64(s.Owed) / unit
		}
		served := min(owed, 1)
		if left <= 1-served+1e-9 {
			if g.whole {
				return price
			}
			return float64(price * (served + left))
		}
		rest := owed - served
		state := 0
		for i, o := range g.owed {
			if math.Abs(o-rest) < math.Abs(g.owed[state]-rest) {
				state = i
			}
		}
		return price + value(g.column(h, state), slack-served)
	}
	out := [3]float64{math.Inf(1), math.Inf(1), run(OnDemand, g.onDemand)}
	guard := g.guarded(slack)
	if s.Market.Up && (!guard || s.Held == Spot && s.Owed == 0) {
		out[Spot] = run(Spot, g.spot)
	}
	if !guard {
		out[None] = value(0, slack-1)
	}
	return out
}

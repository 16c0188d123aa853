package horizon

import (
	"math"
	"time"
)

// State is what a decision looks at.
type State struct {
	Until time.Duration // to the deadline
	Left  time.Duration // useful work left, above zero
	Up    bool          // spot can be had now
	Age   time.Duration // since the market was first seen so, in its present period
	Held  Held
	Owed  time.Duration // overhead that the held machine has still to serve
	Odds  Odds
}

// Verdict is a choice with the dollars that are expected to be paid from now on,
// for each of the choices; one that cannot be made costs infinitely much.
type Verdict struct {
	Choice Held
	USD    [3]float64 // by Held
	Lasts  float64    // chance that the market stays as it is until the next decision
}

// Solver keeps the tables of one problem, made when they are first needed.
type Solver struct {
	p      Problem
	g      *shape
	tables [Scales][Scales]*Table
	Made   int // tables solved so far
}

// New returns a solver without tables.
func New(p Problem) *Solver {
	return &Solver{p: p, g: newShape(p)}
}

// least is the weight from which a table is asked.
const least = 0.02

// Decide returns the cheapest choice in the mean over what the odds hold likely.
func (v *Solver) Decide(s State) Verdict {
	grid := v.p.Grid
	age := s.Age + grid/2
	var wu, wg [Scales]float64
	if s.Up {
		wu, wg = UpPrior.weights(s.Odds.Up, age, grid), GapPrior.weights(s.Odds.Gap, -1, grid)
	} else {
		wu, wg = UpPrior.weights(s.Odds.Up, -1, grid), GapPrior.weights(s.Odds.Gap, age, grid)
	}
	var out Verdict
	sum := 0.0
	for i := range wu {
		for j := range wg {
			w := wu[i] * wg[j]
			if w < least {
				continue
			}
			t := v.tables[i][j]
			if t == nil {
				t = solve(v.g, grid, UpPrior.Scale[i], GapPrior.Scale[j])
				v.tables[i][j] = t
				v.Made++
			}
			var ends float64
			if s.Up {
				ends = UpPrior.Ends(UpPrior.Scale[i], age, grid)
			} else {
				ends = GapPrior.Ends(GapPrior.Scale[j], age, grid)
			}
			q := v.ask(t, s, ends)
			for k := range q {
				out.USD[k] += float64(w * q[k])
			}
			out.Lasts += float64(w * (1 - ends))
			sum += w
		}
	}
	for k := range out.USD {
		out.USD[k] /= sum
		if out.USD[k] < out.USD[out.Choice] {
			out.Choice = Held(k)
		}
	}
	out.Lasts /= sum
	return out
}

// ask is one step of the decision process from the exact state.
func (v *Solver) ask(t *Table, s State, ends float64) [3]float64 {
	g := v.g
	unit := float64(v.p.Grid)
	m := min(int(s.Until/v.p.Grid), g.steps)
	left := float64(s.Left) / unit
	slack := float64(s.Until/v.p.Grid) - left
	n := len(ages)
	k := int(s.Age/v.p.Grid) + 1
	next := bucket(k + 1)
	value := func(c int, slack float64) float64 {
		lost := c
		if s.Up {
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
			return price
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
	out := [3]float64{math.Inf(1), math.Inf(1), run(OnDemand, g.firm)}
	guard := g.guarded(slack)
	if s.Up && (!guard || s.Held == Spot && s.Owed == 0) {
		out[Spot] = run(Spot, g.spot)
	}
	if !guard {
		out[None] = value(0, slack-1)
	}
	return out
}

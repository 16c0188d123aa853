package replay

import (
	"fmt"
	"math"

	"scrimp/internal/work/tune"
)

// Workers is the number of trials that train at once.
const Workers = 4

// hit is the r at which a search counts as having found the best.
const hit = 0.01

// A Result is the outcome of one search on one table.
type Result struct {
	Table     string  `json:"table"`
	Searcher  string  `json:"searcher"`
	Seed      uint64  `json:"seed"`
	R10       float64 `json:"r10"`
	R25       float64 `json:"r25"`
	R50       float64 `json:"r50"`
	R100      float64 `json:"r100"`
	AUC       float64 `json:"auc"`       // the mean of r over the budget
	To1       float64 `json:"to1"`       // the share of the budget at which r reaches 0.01; 1 for never
	Overshoot float64 `json:"overshoot"` // relative amount beyond the budget
	*Stopped

	Trials    int `json:"-"` // started trials
	Switches  int `json:"-"`
	Decisions int `json:"-"`
}

// Stopped describes when a search stopped by itself.
type Stopped struct {
	SpentUSD float64 `json:"stop_spent"`
	Regret   float64 `json:"stop_regret"` // its net value relative to the best moment of the continued search
}

// flight is a running epoch.
type flight struct {
	trial      tune.Trial
	from, till float64
	moved      bool
}

// game is a search being played.
type game struct {
	table   *Table
	history *tune.History
	by      tune.Searcher
	flights [Workers]*flight
	done    float64 // seconds of finished epochs
	over    bool    // the budget is spent
	curve   []moment
	stop    float64 // seconds spent when the searcher stopped; -1 if it did not
	asked   int
	moves   int
}

// moment is an r that holds from a spent amount on.
type moment struct{ spent, r float64 }

// An End is when searches stop by themselves; the zero value: never.
type End struct {
	PointUSD float64 // worth of a point of r
	MinGain  float64 // of the metric per dollar, in place of PointUSD
	Patience int     // consecutive reports; 0: those of 15 % of the spend
}

// worth returns the worth of a point of r in dollars; 0 if unknown.
func (e End) worth(t *Table) float64 {
	if e.MinGain > 0 {
		return (t.Quarter - t.Best) / e.MinGain
	}
	return e.PointUSD
}

// Simulate plays a searcher on a table. It calls next before each decision and stops on its error.
func Simulate(t *Table, name string, seed uint64, end End, next func() error) (Result, error) {
	search := &tune.Search{Space: t.Space, Trials: t.Configs, Epochs: t.MaxEpoch, Budget: t.BudgetSeconds,
		Switch: t.SwitchSeconds, Seed: seed}
	pointUSD := end.worth(t)
	if t.PriceUSD > 0 && pointUSD > 0 {
		search.Plateau.Patience = end.Patience
		if search.Plateau.MinGain = end.MinGain * t.PriceUSD / 3600; end.MinGain == 0 {
			search.PointValue = pointUSD / t.PriceUSD * 3600
		}
	}
	by, err := New(name, search)
	if err != nil {
		return Result{}, err
	}
	return Play(t, name, by, search, pointUSD, next)
}

// Play plays a searcher that was made for this search.
func Play(t *Table, name string, by tune.Searcher, search *tune.Search, pointUSD float64,
	next func() error) (Result, error) {
	g := &game{table: t, history: tune.NewHistory(search), by: by, stop: -1, curve: []moment{{0, 1}}}
	for w := range Workers {
		if err := g.ask(w, 0, next); err != nil {
			return Result{}, err
		}
	}
	for {
		w := g.first()
		if w < 0 {
			break
		}
		if err := g.finish(w, next); err != nil {
			return Result{}, err
		}
	}
	res := g.result()
	res.Table, res.Searcher, res.Seed = t.Table, name, search.Seed
	if pointUSD > 0 {
		res.Stopped = g.stopped(pointUSD)
	}
	return res, nil
}

// first returns the worker whose epoch ends first, the lower one of two, or -1.
func (g *game) first() int {
	best := -1
	for w, f := range g.flights {
		if f != nil && (best < 0 || f.till < g.flights[best].till) {
			best = w
		}
	}
	return best
}

// ask lets the searcher choose for a free worker.
func (g *game) ask(w int, now float64, next func() error) error {
	if err := next(); err != nil {
		return err
	}
	g.asked++
	c := g.by.Next(g.history, w)
	if c.Stop && g.stop < 0 {
		g.stop = g.history.Spent
	}
	if c.Trial == tune.None {
		return nil
	}
	if c.Trial < 0 || c.Trial >= len(g.history.Runs) || !g.history.Free(c.Trial) {
		return fmt.Errorf("the searcher chose trial %d, which cannot train now", c.Trial)
	}
	took := g.table.Curves[c.Trial][g.history.Epoch(c.Trial)].Seconds
	moved := g.history.Start(c.Trial, w)
	if moved {
		took += g.table.SwitchSeconds
		g.moves++
	}
	g.flights[w] = &flight{c.Trial, now, now + took, moved}
	return nil
}

// finish ends the epoch of a worker, and asks for the free workers.
func (g *game) finish(w int, next func() error) error {
	f := g.flights[w]
	g.flights[w] = nil
	now := f.till
	g.done += f.till - f.from
	spent := g.done
	for _, o := range g.flights {
		if o != nil {
			spent += now - o.from
		}
	}
	if g.over = g.over || spent > g.history.Budget; g.over {
		return nil
	}
	e := g.history.Epoch(f.trial)
	g.history.Add(tune.Report{Trial: f.trial, Epoch: e + 1, Value: g.table.Curves[f.trial][e].Value, Cost: f.till - f.from,
		Moved: f.moved, Spent: spent})
	if r := g.table.Regret(g.history.Incumbent); r < g.curve[len(g.curve)-1].r {
		g.curve = append(g.curve, moment{spent, r})
	}
	if spent >= g.history.Budget {
		return nil
	}
	if err := g.ask(w, now, next); err != nil {
		return err
	}
	for o := range g.flights {
		if g.flights[o] == nil && o != w {
			if err := g.ask(o, now, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// at returns r at a spent amount.
func (g *game) at(spent float64) float64 {
	r := 1.0
	for _, m := range g.curve {
		if m.spent <= spent {
			r = m.r
		}
	}
	return r
}

func (g *game) result() Result {
	b := g.history.Budget
	res := Result{R10: g.at(b / 10), R25: g.at(b / 4), R50: g.at(b / 2), R100: g.at(b), To1: 1,
		Trials: len(g.history.Order), Switches: g.moves, Decisions: g.asked}
	for i, m := range g.curve {
		till := b
		if i+1 < len(g.curve) {
			till = g.curve[i+1].spent
		}
		res.AUC += m.r * (till - m.spent) / b
		if m.r <= hit && m.spent/b < res.To1 {
			res.To1 = m.spent / b
		}
	}
	res.Overshoot = math.Max(0, g.done-b) / b
	return res
}

// stopped compares the net value at the stop with that of the best moment: the value of a point × (1 - r) minus the
// amount spent. The best moment may be the start, with a net value of 0.
func (g *game) stopped(pointUSD float64) *Stopped {
	usd := g.table.PriceUSD / 3600
	net := func(spent float64) float64 { return pointUSD*(1-g.at(spent)) - usd*spent }
	best := 0.0
	for _, m := range g.curve {
		best = math.Max(best, net(m.spent))
	}
	stop := g.stop
	if stop < 0 {
		stop = g.done
	}
	s := &Stopped{SpentUSD: usd * stop}
	switch got := net(stop); {
	case got >= best:
	case best > 0:
		s.Regret = (best - got) / best
	default: // nothing could be gained, so the amount spent is the loss
		s.Regret = (best - got) / pointUSD
	}
	return s
}

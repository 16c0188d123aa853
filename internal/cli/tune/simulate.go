package tune

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"sync"

	"scrimp/internal/lib/draw"
	"scrimp/internal/work/tune/replay"
)

// simulate plays every searcher on every table with every seed.
func (a *app) simulate(ctx context.Context, f simulateFlags) error {
	var tables []*replay.Table
	for _, folder := range f.tables {
		t, err := read(folder)
		if err != nil {
			return err
		}
		tables = append(tables, t)
	}
	results, err := play(ctx, tables, f, a.Counter())
	if err != nil {
		return err
	}
	if a.JSON {
		return a.Print(struct {
			Results []replay.Result `json:"results"`
		}{results})
	}
	a.Printf("%s", a.table(results, f))
	return nil
}

// play returns the results by table, searcher and seed. It uses all processors.
func play(ctx context.Context, tables []*replay.Table, f simulateFlags,
	tell func(name string, done, of int)) ([]replay.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]replay.Result, len(tables)*len(f.searchers)*f.seeds)
	var mu sync.Mutex
	next, done := 0, 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= len(results) || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	var all sync.WaitGroup
	for range min(len(results), runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				seed, name, table := i%f.seeds, f.searchers[i/f.seeds%len(f.searchers)], tables[i/f.seeds/len(f.searchers)]
				r, err := replay.Simulate(table, name, uint64(seed), f.end,
					func() error { return context.Cause(ctx) })
				if err != nil {
					cancel(fmt.Errorf("%s on %s with seed %d: %w", name, table.Table, seed, err))
					return
				}
				results[i] = r
				mu.Lock()
				done++
				tell(table.Table+", "+name, done, len(results))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return results, nil
}

// mean holds the mean figures of several searches.
type mean struct {
	replay.Result
	stop   replay.Stopped
	aucVar float64 // variance of the mean AUC
	n      int
}

func meanOf(results []replay.Result) (m mean) {
	m.n = len(results)
	n := float64(m.n)
	for _, r := range results {
		m.R10 += r.R10 / n
		m.R25 += r.R25 / n
		m.R50 += r.R50 / n
		m.R100 += r.R100 / n
		m.AUC += r.AUC / n
		m.To1 += r.To1 / n
		m.Overshoot += r.Overshoot / n
		if r.Stopped != nil {
			m.stop.SpentUSD += r.SpentUSD / n
			m.stop.Regret += r.Regret / n
		}
	}
	for _, r := range results {
		if d := r.AUC - m.AUC; m.n > 1 {
			m.aucVar += d * d / (n - 1) / n
		}
	}
	return m
}

// table prints the means of each table and searcher, and the means over all tables.
func (a *app) table(results []replay.Result, f simulateFlags) string {
	columns := []draw.Column{{Name: "TABLE"}, {Name: "SEARCHER"}}
	for _, name := range []string{"R10", "R25", "R50", "R100", "AUC", "± S.E.", "TO1", "OVERSHOOT"} {
		columns = append(columns, draw.Column{Name: name, Right: true})
	}
	if f.stops() {
		columns = append(columns, draw.Column{Name: "STOP SPENT", Right: true}, draw.Column{Name: "STOP REGRET", Right: true})
	}
	var rows [][]string
	row := func(table, searcher string, m mean) {
		cells := []string{table, searcher}
		for _, v := range []float64{m.R10, m.R25, m.R50, m.R100, m.AUC, math.Sqrt(m.aucVar), m.To1} {
			cells = append(cells, fmt.Sprintf("%.3f", v))
		}
		cells = append(cells, fmt.Sprintf("%.2f %%", 100*m.Overshoot))
		if f.stops() {
			cells = append(cells, fmt.Sprintf("$%.4g", m.stop.SpentUSD), fmt.Sprintf("%.3f", m.stop.Regret))
		}
		rows = append(rows, cells)
	}
	of := func(table, searcher int) []replay.Result {
		at := (table*len(f.searchers) + searcher) * f.seeds
		return results[at : at+f.seeds]
	}
	for t, folder := range f.tables {
		for s, name := range f.searchers {
			row(filepath.Base(folder), name, meanOf(of(t, s)))
		}
	}
	if len(f.tables) > 1 {
		for s, name := range f.searchers {
			row("all", name, f.over(func(t int) mean { return meanOf(of(t, s)) }))
		}
	}
	return draw.Grid(columns, rows, a.Place().Width) + "\n" + draw.Wrap("", fmt.Sprintf("Means over %s of each table; "+
		"smaller is better. S.E. is the standard error of AUC.", draw.Count(f.seeds, "seed")), a.Place().Width) + "\n"
}

// over returns the mean over the tables, each with the same weight.
func (f *simulateFlags) over(of func(table int) mean) mean {
	var list []replay.Result
	variance, n := 0.0, float64(len(f.tables))
	for t := range f.tables {
		m := of(t)
		m.Stopped = &m.stop
		list = append(list, m.Result)
		variance += m.aucVar / (n * n)
	}
	m := meanOf(list)
	m.aucVar = variance
	return m
}

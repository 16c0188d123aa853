package replay

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"scrimp/internal/work/tune"
)

// The kinds of curves in a generated table.
const (
	plain   = "plain"
	crosses = "crosses" // those that begin well end badly
	diverge = "diverge" // some become NaN or infinite
	same    = "same"    // all values and costs are equal
	useless = "useless" // parameters have no influence
	late    = "late"    // half of the curves fall in the last third
)

var likes = []string{plain, crosses, diverge, same, useless, late}

// generate makes a table, always the same for the same arguments.
func generate(t testing.TB, like string, seed uint64, configs, epochs int) *Table {
	t.Helper()
	c := tune.NewChance(seed)
	var cells, curves strings.Builder
	cells.WriteString("config_id,lr,width,kind\n")
	curves.WriteString("config_id,epoch,metric,seconds\n")
	total := 0.0
	for i := range configs {
		lr, width, kind := c.Float(), c.Float(), c.Next()%2
		fmt.Fprintf(&cells, "%d,%g,%d,%c\n", i, math.Pow(10, -4+4*lr), 8+int(120*width), 'a'+rune(kind))
		final := 0.2 + 2*(lr-0.6)*(lr-0.6) + 0.3*(1-width)
		if like == useless {
			final = c.Float()
		}
		for e := 1; e <= epochs; e++ {
			x := float64(e) / float64(epochs)
			v, cost := final+1.5*math.Exp(-x/0.1), (0.5+2*width)*(1+0.05*c.Float())
			switch {
			case like == crosses:
				v = final + 0.8*math.Exp(-x/(0.05+0.5/(1+4*final)))*2/(0.5+final)
			case like == late && kind == 1 && x < 0.67:
				v += 0.4
			case like == same:
				v, cost = 1, 1
			}
			v += 0.01 * (c.Float() - 0.5) * boolean(like != same)
			text := fmt.Sprintf("%.6g", v)
			if like == diverge && lr > 0.7 && x > 1.4*width-0.4 {
				text = []string{"nan", "inf", "-inf"}[i%3]
			}
			total += cost
			fmt.Fprintf(&curves, "%d,%d,%s,%.6g\n", i, e, text, cost)
		}
	}
	mean := total / float64(configs)
	space := fmt.Sprintf(`{"table": "%s", "max_epoch": %d, "budget_seconds": %g, "switch_seconds": %g, "price_usd_per_worker_hour": 3.6,
		"params": [{"name": "lr", "type": "float", "low": 1e-4, "high": 1, "log": true}, {"name": "width", "type": "int", "low": 8,
		"high": 128}, {"name": "kind", "type": "cat", "choices": ["a", "b"]}]}`, like, epochs, 8*mean, mean/float64(epochs)/10)
	table, err := Read(like, strings.NewReader(space), strings.NewReader(cells.String()), strings.NewReader(curves.String()))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// A second, simple computation of the figures of random search and of successive halving by stopping: each worker has a
// list of the epochs that it has finished, and figures are taken from a fine grid of spend.
func TestSimulate_AgreesWithAPlainTwin(t *testing.T) {
	for _, like := range []string{plain, crosses, late} {
		for seed := range uint64(4) {
			table := generate(t, like, seed, 40, 12)
			for _, name := range []string{"random", "asha-stop"} {
				got, err := Simulate(table, name, seed, End{}, goOn)
				if err != nil {
					t.Fatal(err)
				}
				want := twin(table, name == "asha-stop", seed)
				for i, pair := range [][2]float64{{got.R10, want.R10}, {got.R25, want.R25}, {got.R50, want.R50}, {got.R100, want.R100},
					{got.AUC, want.AUC}, {got.To1, want.To1}, {got.Overshoot, want.Overshoot}} {
					if math.Abs(pair[0]-pair[1]) > 2e-4 {
						t.Errorf("%s, %s, seed %d: figure %d is %g, the plain twin says %g", like, name, seed, i, pair[0], pair[1])
					}
				}
			}
		}
	}
}

// twin plays a search in which a worker keeps its trial until it ends.
func twin(table *Table, halve bool, seed uint64) (res Result) {
	type worker struct {
		trial, epoch int
		at           float64 // when its epoch ends
		idle         bool
	}
	order, b := tune.Shuffled(len(table.Configs), seed), table.BudgetSeconds
	var ends [Workers]worker
	var began [Workers]float64
	var reports [][2]float64 // spent, value
	rungs := map[int][]float64{}
	finished := 0.0
	start := func(w, trial, epoch int, now, extra float64) {
		began[w] = now
		ends[w] = worker{trial: trial, epoch: epoch, at: now + table.Curves[trial][epoch].Seconds + extra}
	}
	fresh := func(w int, now float64) {
		if ends[w].idle = len(order) == 0; !ends[w].idle {
			start(w, order[0], 0, now, table.SwitchSeconds)
			order = order[1:]
		}
	}
	for w := range ends {
		fresh(w, 0)
	}
	for {
		w := -1
		for i := range ends {
			if !ends[i].idle && (w < 0 || ends[i].at < ends[w].at) {
				w = i
			}
		}
		if w < 0 {
			break
		}
		e := ends[w]
		finished += e.at - began[w]
		spent := finished
		for i := range ends {
			if i != w && !ends[i].idle {
				spent += e.at - began[i]
			}
		}
		if spent > b {
			ends[w].idle = true
			res.Overshoot = (finished - b) / b
			continue
		}
		v := table.Curves[e.trial][e.epoch].Value
		reports = append(reports, [2]float64{spent, v})
		stop := e.epoch+1 == table.MaxEpoch
		if r := e.epoch + 1; halve && !stop && (r == 1 || r == 3 || r == 9) {
			rungs[r] = append(rungs[r], v)
			better := 0
			for _, o := range rungs[r] {
				if o < v {
					better++
				}
			}
			stop = better >= max(1, len(rungs[r])/3)
		}
		if stop {
			fresh(w, e.at)
		} else {
			start(w, e.trial, e.epoch+1, e.at, 0)
		}
	}
	regret := func(spent float64) float64 {
		best := math.Inf(1)
		for _, r := range reports {
			if r[0] <= spent {
				best = math.Min(best, r[1])
			}
		}
		return math.Max(0, math.Min(1, (best-table.Best)/(table.Quarter-table.Best)))
	}
	res.R10, res.R25, res.R50, res.R100, res.To1 = regret(b/10), regret(b/4), regret(b/2), regret(b), 1
	const steps = 20_000
	for i := range steps {
		r := regret((float64(i) + 0.5) / steps * b)
		if res.AUC += r / steps; r <= 0.01 && res.To1 == 1 {
			res.To1 = (float64(i) + 0.5) / steps
		}
	}
	return res
}

// A decision of the default searcher takes milliseconds, even with ten thousand trials.
func BenchmarkDefault_TenThousandTrials(b *testing.B) {
	table := generate(b, plain, 1, 10_000, 9)
	table.BudgetSeconds *= 5 // 40 full trainings, some 600 epochs
	for b.Loop() {
		n := 0
		start := time.Now()
		res, err := Simulate(table, "default", 1, End{}, func() error { n++; return nil })
		if err != nil || res.Trials < 50 {
			b.Fatal(res.Trials, err)
		}
		b.ReportMetric(float64(time.Since(start).Microseconds())/1000/float64(n), "ms/decision")
		b.ReportMetric(float64(res.Trials), "trials")
	}
}

// The larger the gain that pays, the sooner a search stops by itself, with every searcher; its course up to there is
// the same.
func TestSimulate_StopsSoonerForALargerMinGain(t *testing.T) {
	table := generate(t, plain, 3, 60, 9)
	for _, name := range Names() {
		last := math.Inf(1)
		for _, least := range []float64{1e-9, 1e-4, 1e-2, 1, 100} {
			got, err := Simulate(table, name, 1, End{MinGain: least, Patience: 5}, goOn)
			if err != nil {
				t.Fatal(err)
			}
			if got.SpentUSD > last+1e-9 {
				t.Errorf("%s: for a gain of %g it stops after $%g, and after $%g for a smaller one", name, least,
					got.SpentUSD, last)
			}
			last = got.SpentUSD
		}
		if all := table.BudgetSeconds * table.PriceUSD / 3600; last > 0.6*all {
			t.Errorf("%s: it spends $%g of $%g, although nothing pays", name, last, all)
		}
	}
}

package groups

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"scrimp/internal/work/study"
	"scrimp/internal/work/tune"
)

// The best value against the spend agrees with a plain sum over all reports up to each moment.
func TestBestBySpend_AgreesWithAPlainTwin(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		spec := &study.Spec{Metric: "m", Maximize: seed%2 == 1, Fidelity: study.Fidelity{Name: study.Epoch, Min: 1, Max: 9}}
		var reports []Report
		cost := make([]float64, 5)
		for range 60 {
			n := rng.IntN(5)
			cost[n] += rng.Float64()
			r := Report{Trial: n, Unit: 1, Value: rng.NormFloat64(), Spent: cost[n]}
			if k := rng.IntN(6); k == 0 {
				r.Phase = Paused
			} else if k == 1 {
				r.Bad = true
			}
			reports = append(reports, r)
		}
		at := func(spent float64) (best float64) {
			best = math.NaN()
			for i := range reports {
				last := map[int]float64{}
				for _, r := range reports[:i+1] {
					last[r.Trial] = r.Spent
				}
				sum := 0.0
				for _, c := range last {
					sum += c
				}
				r := reports[i]
				if sum > spent+1e-9 || r.Phase != "" || r.Bad {
					continue
				}
				if math.IsNaN(best) || (r.Value < best) != spec.Maximize && r.Value != best {
					best = r.Value
				}
			}
			return best
		}
		bill := 0.5 * float64(seed) // with what no report has, such as minimum charges
		for _, c := range cost {
			bill += c
		}
		list := BestBySpend(spec, false, make([]Trial, 5), reports, bill)
		if end := list[len(list)-1].Spent; seed > 0 && math.Abs(end-bill) > 1e-9 {
			t.Errorf("seed %d: the last mark is at $%g, and the search cost $%g", seed, end, bill)
		}
		for i, m := range list {
			if want := at(m.Spent); m.Best != want {
				t.Errorf("seed %d: at $%g it is %g, and the plain sum says %g", seed, m.Spent, m.Best, want)
			}
			if before := at(m.Spent - 1e-6); i < len(list)-1 && before == m.Best {
				t.Errorf("seed %d: mark %d at $%g is no improvement", seed, i, m.Spent)
			}
		}
	}
}

func TestRungs_CountTheTrialsThatReachedThem(t *testing.T) {
	spec := &study.Spec{Metric: "m", Fidelity: study.Fidelity{Name: study.Epoch, Min: 1, Max: 9}}
	trials, reports := played([][]float64{{5}, {4, 3, 2}, {9, 8, 7, 1}, {}}, Report{})
	if got := fmt.Sprint(Rungs(spec, trials, reports)); got != "[{1 3 2 4} {3 2 1 2}]" {
		t.Errorf("rungs %s", got)
	}
	if got := Rungs(&study.Spec{Metric: "m"}, trials, reports); got != nil {
		t.Errorf("without a fidelity: %v", got)
	}
}

// A parameter that decides the value explains nearly all of it, one without influence next to nothing, and the
// values' scale does not matter.
func TestImportance_FindsTheParameterThatDecides(t *testing.T) {
	spec := &study.Spec{Metric: "m", Fidelity: study.Fidelity{Name: study.Epoch, Min: 1, Max: 9}, Seed: 4, Params: []study.Param{
		{Name: "lr", Min: 0, Max: 1}, {Name: "useless", Min: 0, Max: 1}, {Name: "kind", Values: []string{`"a"`, `"b"`}}, {Name: "one", Values: []string{"1"}}}}
	pool := spec.Pool()
	of := func(value func(v []tune.Value) float64) *Importance {
		var curves [][]float64
		for c := range 60 {
			list := []float64{0, value(pool[c])}
			if c%3 == 0 { // what only a third has reached is not compared
				list = append(list, float64(c))
			}
			curves = append(curves, list)
		}
		trials, reports := played(curves, Report{})
		for c := range trials {
			trials[c].Config = c
		}
		return ImportanceOf(spec, pool, trials, reports)
	}
	numeric := of(func(v []tune.Value) float64 { return math.Exp(20 * v[0]) })
	if numeric == nil || numeric.Trials != 60 || numeric.Unit != 2 || numeric.Shares[0] < 0.85 || numeric.Shares[1] > 0.15 ||
		numeric.Shares[2] > 0.15 || numeric.Shares[3] != 0 {
		t.Errorf("lr decides: %+v", numeric)
	}
	if kind := of(func(v []tune.Value) float64 { return v[2] }); kind == nil || kind.Shares[2] < 0.99 || kind.Shares[0] > 0.15 {
		t.Errorf("kind decides: %+v", kind)
	}
	if same := of(func([]tune.Value) float64 { return 3 }); same != nil {
		t.Errorf("all values are equal: %+v", same)
	}
	trials, reports := played([][]float64{{1}, {2}, {3}}, Report{})
	if few := ImportanceOf(spec, pool, trials, reports); few != nil {
		t.Errorf("three trials: %+v", few)
	}
}

// The rank correlation of a proxy with full trainings is that of plain arithmetic: 1 - 6 * sum of d^2 / (n (n^2 - 1)).
func TestAgreement_ComparesTheRanksOfPromotedTrials(t *testing.T) {
	spec := &study.Spec{Metric: "m", Fidelity: study.Fidelity{Name: study.Epoch, Min: 1, Max: 9},
		Proxy: &study.Proxy{Max: 3, Promote: 4}}
	trial := func(config int, promoted bool, unit int, best float64) Trial {
		return Trial{Config: config, Promoted: promoted, Unit: unit, Values: unit, Best: best}
	}
	list := []Trial{trial(1, false, 3, 0.1), trial(2, false, 3, 0.2), trial(3, false, 1, 0.3), trial(4, false, 3, 0.4),
		trial(5, false, 3, 0.5), trial(1, true, 9, 20), trial(2, true, 9, 10)}
	if _, n, known := Agreement(spec, list); n != 2 || known {
		t.Errorf("two trials: %d, known %t", n, known)
	}
	list = append(list, trial(3, true, 9, 40), trial(4, true, 9, 30), trial(5, true, 8, 1)) // the last is not trained in full
	rho, n, known := Agreement(spec, list)
	if want := 1 - 6*float64(1+1+1+1)/(4*(16-1)); n != 4 || !known || math.Abs(rho-want) > 1e-12 {
		t.Errorf("%g of %d, want %g", rho, n, want)
	}
	if w := Warnings(spec, list, nil, 0); len(w) != 0 {
		t.Errorf("warnings %q", w)
	}
	list[7].Best, list[8].Best = 5, 1
	if w := Warnings(spec, list, nil, 0); len(w) != 1 {
		t.Errorf("warnings %q", w)
	}
	if got := fmt.Sprint(Rungs(spec, list, nil)); got != "[{1 5 4 0} {3 4 0 0}]" {
		t.Errorf("rungs %s", got)
	}
}

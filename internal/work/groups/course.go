package groups

import (
	"cmp"
	"slices"

	"scrimp/internal/work/study"
	"scrimp/internal/work/tune"
)

// A Mark is the best value of a search once its trials had cost an amount together.
type Mark struct{ Spent, Best float64 }

// A Rung is how many trials of a search were trained to a unit, and how many of them further. Best is the best value up
// to that unit.
type Rung struct {
	Unit, Reached, Continued int
	Best                     float64
}

// An Importance says how much each parameter of a search matters: the share of the spread of the trials' values that it
// explains alone, from 0 to 1. Values are compared by their ranks at one unit, and corrected for chance. Trials is the
// number of those compared.
type Importance struct {
	Unit, Trials int
	Shares       []float64 // in parameter order
}

// values calls do with the values of a study in the order of their arrival: those of its promoted trials, or those of
// all others.
func values(trials []Trial, promoted bool, reports []Report, do func(r Report)) {
	for _, r := range reports {
		if r.Phase == "" && !r.Bad && r.Trial >= 0 && r.Trial < len(trials) && trials[r.Trial].Promoted == promoted {
			do(r)
		}
	}
}

// better reports whether a value is closer to the goal than another.
func better(spec *study.Spec, a, b float64) bool {
	if spec.Maximize {
		return a > b
	}
	return a < b
}

// BestBySpend returns the best value of the promoted trials, or of all others, against the spend of all trials: a mark
// where it improves, and one at the end, at the cost of the study. The cost includes what no value reports, such as
// minimum charges.
func BestBySpend(spec *study.Spec, promoted bool, trials []Trial, reports []Report, cost float64) (list []Mark) {
	spent, sum := make([]float64, len(trials)), 0.0
	for _, r := range reports {
		if r.Trial < 0 || r.Trial >= len(trials) {
			continue
		}
		if r.Spent > spent[r.Trial] {
			sum += r.Spent - spent[r.Trial]
			spent[r.Trial] = r.Spent
		}
		if r.Phase != "" || r.Bad || trials[r.Trial].Promoted != promoted {
			continue
		}
		if n := len(list); n == 0 || better(spec, r.Value, list[n-1].Best) {
			list = append(list, Mark{sum, r.Value})
		}
	}
	if n, end := len(list), max(sum, cost); n > 0 && end > list[n-1].Spent {
		list = append(list, Mark{end, list[n-1].Best})
	}
	return list
}

// Rungs returns the rungs of a study: the first unit, three, nine and so on, and the full training. Without a fidelity
// there are none. Promoted trials do not count: their values do not compare with the others'.
func Rungs(spec *study.Spec, trials []Trial, reports []Report) (list []Rung) {
	if spec.Fidelity.Name == "" {
		return nil
	}
	for unit := 1; unit < spec.Units(); unit *= 3 {
		list = append(list, Rung{Unit: unit})
	}
	list = append(list, Rung{Unit: spec.Units()})
	for i := range list {
		g, some := &list[i], false
		for _, t := range trials {
			if t.Promoted {
				continue
			}
			if t.Values > 0 && t.Unit >= g.Unit {
				g.Reached++
			}
			if t.Unit > g.Unit {
				g.Continued++
			}
		}
		values(trials, false, reports, func(r Report) {
			if r.Unit <= g.Unit && (!some || better(spec, r.Value, g.Best)) {
				g.Best, some = r.Value, true
			}
		})
	}
	return slices.DeleteFunc(list, func(g Rung) bool { return g.Reached == 0 })
}

// Bounds of an importance.
const (
	leastCompared = 8 // trials
	mostParts     = 4 // of a parameter's values
)

// ImportanceOf compares the trials at the last unit that half of them, and eight at least, have reached. It returns nil
// if there are too few, or if all of them have the same value. Promoted trials do not count.
func ImportanceOf(spec *study.Spec, pool [][]tune.Value, trials []Trial, reports []Report) *Importance {
	var reached []int
	compared := func(t Trial) bool { return t.Values > 0 && !t.Promoted && t.Config >= 0 && t.Config < len(pool) }
	for _, t := range trials {
		if compared(t) {
			reached = append(reached, t.Unit)
		}
	}
	least := max(leastCompared, (len(reached)+1)/2)
	if len(reached) < least {
		return nil
	}
	slices.SortFunc(reached, func(a, b int) int { return b - a })
	v := &Importance{Unit: reached[least-1]}
	at := make([]float64, len(trials))
	values(trials, false, reports, func(r Report) {
		if r.Unit <= v.Unit {
			at[r.Trial] = r.Value
		}
	})
	var configs []int
	var list []float64
	for n, t := range trials {
		if compared(t) && t.Unit >= v.Unit {
			configs, list = append(configs, t.Config), append(list, at[n])
		}
	}
	v.Trials, list = len(list), ranks(list)
	for d := range spec.Params {
		column := make([]float64, len(configs))
		for i, c := range configs {
			column[i] = pool[c][d]
		}
		share, known := explained(list, parts(column))
		if !known {
			return nil
		}
		v.Shares = append(v.Shares, share)
	}
	return v
}

// ranks returns the rank of each value; equal values share the mean of theirs.
func ranks(list []float64) []float64 {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(list[a], list[b]) })
	of := make([]float64, len(list))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && list[order[to]] == list[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			of[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return of
}

// parts numbers the parts of a parameter's values: each value is one, or each quarter of them by size.
func parts(column []float64) []int {
	distinct := slices.Compact(slices.Sorted(slices.Values(column)))
	of := make([]int, len(column))
	for i, r := range ranks(column) {
		if at, _ := slices.BinarySearch(distinct, column[i]); len(distinct) <= mostParts {
			of[i] = at
		} else {
			of[i] = int(r * mostParts / float64(len(column)))
		}
	}
	return of
}

// explained returns the share of the variance of a list that lies between its parts, less what chance explains: epsilon
// squared. It is unknown if all values are equal.
func explained(list []float64, part []int) (share float64, known bool) {
	sum, n := map[int]float64{}, map[int]float64{}
	mean := 0.0
	for i, v := range list {
		sum[part[i]] += v
		n[part[i]]++
		mean += v / float64(len(list))
	}
	all, within := 0.0, 0.0
	for i, v := range list {
		own := v - sum[part[i]]/n[part[i]]
		all, within = all+float64((v-mean)*(v-mean)), within+float64(own*own)
	}
	free := float64(len(list) - len(n))
	switch {
	case all <= 1e-9*float64(len(list)): // all values are equal, but for rounding
		return 0, false
	case free <= 0 || len(n) < 2:
		return 0, true
	}
	return max(0, min(1, 1-within/free*float64(len(list)-1)/all)), true
}

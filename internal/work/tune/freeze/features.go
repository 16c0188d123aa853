package freeze

import (
	"cmp"
	"slices"

	"scrimp/internal/work/tune"
)

// features holds the trials' parameters for the models: numbers by their rank among all trials, so that undeclared
// logarithms and outliers do not matter, and choices unchanged.
type features struct {
	x     [][]float64 // by trial and parameter
	equal []bool      // by parameter: its values are only equal or different
}

func newFeatures(s *tune.Search) *features {
	f := &features{x: make([][]float64, len(s.Trials)), equal: make([]bool, len(s.Space.Params))}
	for i := range f.x {
		f.x[i] = make([]float64, len(s.Space.Params))
	}
	for d, p := range s.Space.Params {
		order, ordered := p.Ordered()
		f.equal[d] = p.Type == tune.Categorical && !ordered
		column := make([]float64, len(s.Trials))
		for i, values := range s.Trials {
			if column[i] = values[d]; p.Type == tune.Categorical && ordered {
				column[i] = order[int(values[d])]
			}
		}
		if !f.equal[d] {
			column = ranks(column)
		}
		for i, v := range column {
			f.x[i][d] = v
		}
	}
	return f
}

// ranks returns the ranks of values, from 0 to 1; equal values share their middle rank.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(values[a], values[b]), cmp.Compare(a, b)) })
	out := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = (float64(from+to-1)/2 + 0.5) / float64(len(order))
		}
		from = to
	}
	return out
}

// distance returns the squared distance of two trials over all parameters.
func (f *features) distance(i, j int) (r2 float64) {
	for d := range f.equal {
		r2 += f.apart(i, j, d)
	}
	return r2
}

// apart returns the squared distance of two trials in one parameter.
func (f *features) apart(i, j, d int) float64 {
	v := f.x[i][d] - f.x[j][d]
	if f.equal[d] {
		if v != 0 {
			return 1
		}
		return 0
	}
	return v * v
}

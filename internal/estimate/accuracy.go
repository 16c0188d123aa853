package estimate

import (
	"math"
	"sort"

	"scrimp/internal/estimate/residual"
)

// Error holds the errors of estimates for one kind of run, each estimated as if neither it nor the runs grouped with it
// had been measured. Errors are relative to 1.
type Error struct {
	Kind    string  `json:"kind"`     // family of models; "all" for every run
	What    string  `json:"what"`     // throughput or memory
	LeftOut string  `json:"left_out"` // stack: source, task, model and accelerator; source: all runs of a source
	Runs    int     `json:"runs"`
	Groups  int     `json:"groups"`
	Mean    float64 `json:"mean"`   // mean of |estimate / measured - 1|
	Median  float64 `json:"median"` //
	Covered float64 `json:"covered"`
}

// Accuracy returns the past errors of this estimator by kind of model, over the runs that it learned from.
func (e *Estimator) Accuracy() []Error {
	var out []Error
	for _, w := range []struct {
		what string
		l    *residual.Learned
		k    *residual.Kernel
	}{{"throughput", e.rate, standard()}, {"memory", e.weight, memoryKernel()}} {
		if len(w.l.Seen) == 0 {
			continue
		}
		x, ok := w.k.Examine(w.l.Seen)
		if !ok {
			continue
		}
		for _, by := range []struct {
			name  string
			names []int
			widen residual.Widths
		}{{"stack", stackNames, w.l.Near}, {"source", sourceNames, w.l.Afar}} {
			groups := w.l.Grouped(by.names...)
			mean, sd := x.LeftOut(groups)
			out = append(out, e.errors(w.what, by.name, w.l.Seen, groups, x.Y, mean, sd, by.widen)...)
		}
	}
	return out
}

func (e *Estimator) errors(what, left string, seen []residual.Point, groups [][]int, y, mean, sd []float64,
	widen residual.Widths) []Error {
	type sum struct {
		e      Error
		errors []float64
	}
	at := map[string]*sum{}
	add := func(kind string, i int, counted map[string]bool) {
		s := at[kind]
		if s == nil {
			s = &sum{e: Error{Kind: kind, What: what, LeftOut: left}}
			at[kind] = s
		}
		if !counted[kind] {
			s.e.Groups++
			counted[kind] = true
		}
		s.e.Runs++
		s.errors = append(s.errors, math.Abs(math.Exp(mean[i]-y[i])-1))
		if math.Abs(mean[i]-y[i]) <= math.Max(floor, widen.Of(seen[i].Name[cFamily])*sd[i]) {
			s.e.Covered++
		}
	}
	for _, g := range groups {
		counted := map[string]bool{}
		for _, i := range g {
			if math.IsNaN(mean[i]) {
				continue
			}
			add("all", i, counted)
			add(e.families[seen[i].Name[cFamily]], i, counted)
		}
	}
	var out []Error
	for _, s := range at {
		sort.Float64s(s.errors)
		n := len(s.errors)
		for _, v := range s.errors {
			s.e.Mean += v / float64(n)
		}
		s.e.Median = (s.errors[(n-1)/2] + s.errors[n/2]) / 2
		s.e.Covered /= float64(n)
		out = append(out, s.e)
	}
	sort.Slice(out, func(i, j int) bool {
		if (out[i].Kind == "all") != (out[j].Kind == "all") {
			return out[i].Kind == "all"
		}
		return out[i].Kind < out[j].Kind
	})
	return out
}

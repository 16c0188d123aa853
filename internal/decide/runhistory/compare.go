package runhistory

import (
	"math"
	"slices"
	"strings"
	"time"

	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
)

// Pair compares one estimate made at the submission of a run with its measured value.
type Pair struct {
	Job      string    `json:"job"`
	Name     string    `json:"name"`
	Finished time.Time `json:"finished"`
	What     string    `json:"what"` // throughput, hours or dollars
	Kind     string    `json:"kind"` // model family for throughput, otherwise kind of the job
	Unit     string    `json:"unit"`
	Expected float64   `json:"expected"`
	Actual   float64   `json:"actual"`
	Within   *bool     `json:"within"` // whether Actual lies in the stated range; null without one
}

// Error returns the relative error, |expected / actual - 1|.
func (p Pair) Error() float64 { return math.Abs(p.Expected/p.Actual - 1) }

// Missed summarizes the errors of the estimates for one kind of run, as fractions.
type Missed struct {
	What   string   `json:"what"`
	Kind   string   `json:"kind"` // "all" covers every run
	Runs   int      `json:"runs"`
	Median float64  `json:"median"` // median relative error
	Mean   float64  `json:"mean"`
	Bias   float64  `json:"bias"`         // median of expected / actual - 1; above 0 means overestimated
	Within *float64 `json:"within_share"` // share of the stated ranges that held; null if none was stated
}

// mostCompared bounds the newest runs whose throughput Compare estimates again, each from all runs before it.
const mostCompared = 100

// Compare pairs, for runs newest first, each estimate with its measured value. Hours and dollars are the estimates
// made at submission. Compare estimates throughput as it could have been then: from rows and from the runs finished
// by then.
func Compare(past []Run, rows []runs.Row, chips hardware.Chips) []Pair {
	var list []Pair
	var e *estimate.Estimator
	learned := -1
	for i, r := range past {
		p := Pair{Job: r.Job, Name: r.Name, Finished: r.Finished, Kind: r.Kind}
		if row, ok := r.Row(chips); ok && i < mostCompared {
			before := earlier(past, r.Submitted)
			// an earlier submission has fewer finished runs, so an equal number means the same runs
			if len(before) != learned {
				e, learned = estimate.New(chips, nil, append(slices.Clone(rows), Rows(before, chips)...)), len(before)
			}
			if x, ok := e.Rate(row.Question()); ok {
				t, in := p, x.Low <= *r.Throughput && *r.Throughput <= x.High
				t.What, t.Kind, t.Unit, t.Within = "throughput", row.Family, r.Unit, &in
				t.Expected, t.Actual = x.Value, *r.Throughput
				list = append(list, t)
			}
		}
		list = append(list, r.submitted(p)...)
	}
	return list
}

// earlier returns the runs that finished before a time.
func earlier(runs []Run, at time.Time) []Run {
	var before []Run
	for _, b := range runs {
		if b.Finished.Before(at) {
			before = append(before, b)
		}
	}
	return before
}

// submitted pairs the hours and dollars estimated at submission with the measured values.
func (r Run) submitted(p Pair) []Pair {
	var list []Pair
	if r.ExpectedS != nil && r.WorkS != nil && *r.WorkS > 0 {
		h := p
		h.What, h.Unit, h.Expected, h.Actual = "hours", "h", *r.ExpectedS/3600, *r.WorkS/3600
		list = append(list, h)
	}
	whole := r.State == "succeeded" && !strings.HasSuffix(r.Name, suffix)
	if whole && r.ExpectedCost != nil && r.Cost.Sign() > 0 {
		d := p
		d.What, d.Unit, d.Expected, d.Actual = "dollars", string(r.Currency), r.ExpectedCost.Float(), r.Cost.Float()
		list = append(list, d)
	}
	return list
}

// Missing summarizes the pairs by kind: all kinds together first, then each kind by name.
func Missing(list []Pair) []Missed {
	var out []Missed
	for _, what := range []string{"throughput", "hours", "dollars"} {
		var kinds []string
		for _, p := range list {
			if p.What == what && !slices.Contains(kinds, p.Kind) {
				kinds = append(kinds, p.Kind)
			}
		}
		slices.Sort(kinds)
		for _, kind := range append([]string{"all"}, kinds...) {
			if m, ok := missed(list, what, kind); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

func missed(list []Pair, what, kind string) (Missed, bool) {
	m := Missed{What: what, Kind: kind}
	var errors, signed []float64
	given, within := 0, 0
	for _, p := range list {
		if p.What != what || kind != "all" && p.Kind != kind {
			continue
		}
		errors, signed = append(errors, p.Error()), append(signed, p.Expected/p.Actual-1)
		m.Mean += p.Error()
		if p.Within != nil {
			given++
			if *p.Within {
				within++
			}
		}
	}
	if m.Runs = len(errors); m.Runs == 0 {
		return m, false
	}
	m.Mean /= float64(m.Runs)
	m.Median, m.Bias = median(errors), median(signed)
	if given > 0 {
		w := float64(within) / float64(given)
		m.Within = &w
	}
	return m, true
}

// median returns the median of a list that is not empty, and sorts it.
func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Figure is one line of the table: a measured value and its limits.
type Figure struct {
	Name   string
	Unit   string
	Key    string // of the value in a measurement's result
	Higher bool   // more is better
	// Ratio limits now over base: from below if more is better, otherwise from above. 0: no limit.
	Ratio float64
	// Most limits the value in this tree, whatever base has. 0: no limit.
	Most float64
}

// Samples are a figure's values over the rounds in one tree.
type Samples []float64

// Best returns the best value: the one least disturbed by other users of the machine.
func (s Samples) Best(higher bool) (v float64, ok bool) {
	if len(s) == 0 {
		return 0, false
	}
	if higher {
		return slices.Max(s), true
	}
	return slices.Min(s), true
}

// Median returns the middle value, or the mean of the two middle ones.
func (s Samples) Median() (v float64, ok bool) {
	if len(s) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2, true
}

// Verdict is the result of a figure's limits.
type Verdict string

// The verdicts. Unknown means that there is a limit, but a tree has no value for it.
const (
	OK      Verdict = "ok"
	Missed  Verdict = "MISSED"
	Failed  Verdict = "FAILED"
	Unknown Verdict = "unknown"
	NoLimit Verdict = ""
)

// Row is a figure with the values of both trees.
type Row struct {
	Figure
	Base, Now Samples
	Failed    bool // this tree has the measurement, and it failed
}

// RatioOf returns now over base, from the best rounds.
func (r Row) RatioOf() (ratio float64, ok bool) {
	base, inBase := r.Base.Best(r.Higher)
	now, inNow := r.Now.Best(r.Higher)
	if !inBase || !inNow || base == 0 {
		return 0, false
	}
	return now / base, true
}

// Verdict compares the row with its limits.
func (r Row) Verdict() Verdict {
	if r.Failed {
		return Failed
	}
	if r.Ratio == 0 && r.Most == 0 {
		return NoLimit
	}
	ratio, compared := r.RatioOf()
	now, measured := r.Now.Best(r.Higher)
	worse := ratio > r.Ratio
	if r.Higher {
		worse = ratio < r.Ratio
	}
	switch {
	case r.Ratio > 0 && compared && worse, r.Most > 0 && measured && now > r.Most:
		return Missed
	case r.Ratio > 0 && !compared, r.Most > 0 && !measured:
		return Unknown
	}
	return OK
}

// LimitText formats the limits.
func (r Row) LimitText() string {
	text := ""
	if r.Ratio > 0 {
		sign := "<="
		if r.Higher {
			sign = ">="
		}
		text = fmt.Sprintf("%s %.2fx", sign, r.Ratio)
	}
	if r.Most > 0 {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("<= %s %s", number(r.Most), r.Unit)
	}
	return text
}

// number formats a value with at least three digits and with separators between thousands.
func number(v float64) string {
	if math.Abs(v) < 100 && v != math.Trunc(v) {
		return fmt.Sprintf("%.3g", v)
	}
	text := fmt.Sprintf("%.0f", math.Abs(v))
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if v < 0 {
		return "-" + text
	}
	return text
}

// worst returns the verdict of the whole run.
func worst(rows []Row) Verdict {
	rank := map[Verdict]int{NoLimit: 0, OK: 1, Unknown: 2, Missed: 3, Failed: 4}
	list := []Verdict{NoLimit}
	for _, r := range rows {
		list = append(list, r.Verdict())
	}
	return slices.MaxFunc(list, func(a, b Verdict) int { return cmp.Compare(rank[a], rank[b]) })
}

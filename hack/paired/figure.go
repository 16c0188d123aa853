package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Figure is one line of the table: what is measured, and what it must hold.
type Figure struct {
	Name   string
	Unit   string
	Key    string // under which a measurement returns it
	Higher bool   // more is better
	// Ratio is the limit of now over base: a floor where more is better, else a ceiling. 0: none.
	Ratio float64
	// Most is what it may be in this tree, whatever base has. 0: no limit.
	Most float64
}

// Samples are what the rounds measured of a figure in one tree.
type Samples []float64

// Best is the best of the rounds: the one that other users of the machine disturbed least.
func (s Samples) Best(higher bool) (v float64, ok bool) {
	if len(s) == 0 {
		return 0, false
	}
	if higher {
		return slices.Max(s), true
	}
	return slices.Min(s), true
}

// Median is the middle one, or the mean of the two in the middle.
func (s Samples) Median() (v float64, ok bool) {
	if len(s) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2, true
}

// Verdict is what became of a figure's limits.
type Verdict string

// The verdicts. Unknown: there is a limit, and a tree has nothing to hold against it.
const (
	OK      Verdict = "ok"
	Missed  Verdict = "MISSED"
	Failed  Verdict = "FAILED"
	Unknown Verdict = "unknown"
	NoLimit Verdict = ""
)

// Row is a figure with what both trees came to.
type Row struct {
	Figure
	Base, Now Samples
	Failed    bool // this tree has the measurement, and it failed
}

// RatioOf is now over base, of the best rounds.
func (r Row) RatioOf() (ratio float64, ok bool) {
	base, inBase := r.Base.Best(r.Higher)
	now, inNow := r.Now.Best(r.Higher)
	if !inBase || !inNow || base == 0 {
		return 0, false
	}
	return now / base, true
}

// Verdict holds the row against its limits.
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

// LimitText is how the limits are written.
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

// number writes three digits or more, thousands apart.
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

// worst is the verdict that the whole run ends with.
func worst(rows []Row) Verdict {
	rank := map[Verdict]int{NoLimit: 0, OK: 1, Unknown: 2, Missed: 3, Failed: 4}
	list := []Verdict{NoLimit}
	for _, r := range rows {
		list = append(list, r.Verdict())
	}
	return slices.MaxFunc(list, func(a, b Verdict) int { return cmp.Compare(rank[a], rank[b]) })
}

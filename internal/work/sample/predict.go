package sample

import (
	"math"

	"scrimp/internal/lib/money"
)

// A Run is what a stage took on a part of the data.
type Run struct {
	Part    Part
	Seconds float64
	Cost    money.Amount
}

// A Prediction is what a stage takes on all of the data. What a stage takes is fixed + share × fraction.
type Prediction struct {
	// Seconds and Cost are what two runs say together. With one run they are bounds from above: what the stage takes if
	// nothing of it is fixed.
	Seconds float64
	Cost    money.Amount
	Bound   bool
}

// Predict returns what a stage takes on all of the data, by its runs on one or two parts, the smaller first. ok is
// false without a run.
func Predict(runs []Run) (p Prediction, ok bool) {
	switch len(runs) {
	case 0:
		return p, false
	case 1:
		a := runs[0]
		seconds := a.Seconds * float64(Whole) / float64(a.Part)
		return Prediction{seconds, a.Cost.Times(int(Whole)).Over(int(a.Part)), true}, true
	}
	a, b := runs[0], runs[len(runs)-1]
	more, span := Whole-a.Part, b.Part-a.Part
	if span <= 0 {
		return p, false
	}
	p.Seconds = math.Max(b.Seconds, a.Seconds+(b.Seconds-a.Seconds)*float64(more)/float64(span))
	if p.Cost = a.Cost.Add(b.Cost.Sub(a.Cost).Times(int(more)).Over(int(span))); p.Cost.Cmp(b.Cost) < 0 {
		p.Cost = b.Cost // the larger part took less, by chance
	}
	return p, true
}

package sample

import (
	"math"
	"math/big"
	"strconv"

	"scrimp/internal/lib/money"
)

// Share is how much of the data a stage got: Taken of Of rows or files, which rounding makes another share than the one
// that the file asks for.
type Share struct{ Taken, Of int64 }

// mostOf bounds the denominator of a share that predicts, so that the product of two fits an int64.
const mostOf = 1_000_000_000

// Exact returns a share in lowest terms; one of more than a billion is rounded to billionths. ok is false if it is not
// above 0 and at most 1.
func (s Share) Exact() (exact Share, ok bool) {
	if s.Taken <= 0 || s.Of < s.Taken {
		return Share{}, false
	}
	r := big.NewRat(s.Taken, s.Of)
	if s = (Share{r.Num().Int64(), r.Denom().Int64()}); s.Of > mostOf {
		n := new(big.Int).Mul(big.NewInt(s.Taken), big.NewInt(mostOf))
		s = Share{max(1, n.Quo(n, big.NewInt(s.Of)).Int64()), mostOf}
	}
	return s, true
}

// Less reports whether s is a smaller share than t.
func (s Share) Less(t Share) bool {
	return big.NewRat(s.Taken, s.Of).Cmp(big.NewRat(t.Taken, t.Of)) < 0
}

// Percent is the share as a percentage with at most two decimal places, such as 33.33 %.
func (s Share) Percent() string {
	return strconv.FormatFloat(math.Round(1e4*float64(s.Taken)/float64(s.Of))/100, 'f', -1, 64) + " %"
}

// Share is the part as a share.
func (p Part) Share() Share { return Share{int64(p), int64(Whole)} }

// A Run is what a stage took on a share of the data.
type Run struct {
	Share   Share
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

// Predict returns what a stage takes on all of the data, by its runs on one or two shares, the smaller first. ok is
// false without a run, and if two shares are the same: then one of them bounds the whole.
func Predict(runs []Run) (p Prediction, ok bool) {
	switch len(runs) {
	case 0:
		return p, false
	case 1:
		a := runs[0]
		s, ok := a.Share.Exact()
		if !ok {
			return p, false
		}
		seconds := a.Seconds * float64(s.Of) / float64(s.Taken)
		return Prediction{seconds, a.Cost.Times(int(s.Of)).Over(int(s.Taken)), true}, true
	}
	a, b := runs[0], runs[len(runs)-1]
	s, oka := a.Share.Exact()
	t, okb := b.Share.Exact()
	// (1 - s) / (t - s), with both multiplied by the denominators
	more, span := (s.Of-s.Taken)*t.Of, t.Taken*s.Of-s.Taken*t.Of
	switch {
	case !oka || !okb:
		return p, false
	case span <= 0: // rounding made them the same share
		return Predict(runs[len(runs)-1:])
	}
	if g := new(big.Int).GCD(nil, nil, big.NewInt(more), big.NewInt(span)).Int64(); g > 1 {
		more, span = more/g, span/g
	}
	p.Seconds = math.Max(b.Seconds, a.Seconds+(b.Seconds-a.Seconds)*float64(more)/float64(span))
	if p.Cost = a.Cost.Add(b.Cost.Sub(a.Cost).Times(int(more)).Over(int(span))); p.Cost.Cmp(b.Cost) < 0 {
		p.Cost = b.Cost // the larger part took less, by chance
	}
	return p, true
}

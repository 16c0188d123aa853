// Package evict decides which outputs of pipeline stages go when they take too much room: those with the least value
// per byte. The value is the cost to make them again, times the odds that a run uses them.
package evict

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// Constants of the odds. A use counts half after halfLife; horizon is the time for which the odds hold; prior is how
// often outputs of which nothing is known are used within the horizon.
const (
	halfLife = 90 * 24 * time.Hour
	horizon  = 30 * 24 * time.Hour
	prior    = 0.5
)

// Entry is the outputs of a stage.
type Entry struct {
	Job    string
	Bytes  int64
	Cost   money.Amount // of the job that made them
	Priced bool         // Cost is known
	Made   time.Time
	Uses   []time.Time // runs that used them instead of making them again
	Needed bool        // a pipeline that is not over may read them
}

// Odds returns the probability that a run uses the outputs within 30 days: 1 - exp(-rate · 30 d), where the rate is the
// mean of a Gamma distribution after the uses so far. Uses and time count less the longer ago they are, by half in
// 90 days: rate = (Σ 2^(-age/90d) + 1/2) ÷ (∫ 2^(-t/90d) dt + 30 d), with the integral over the age of the outputs.
func (e *Entry) Odds(now time.Time) float64 {
	decayed := func(since time.Time) float64 {
		return math.Exp2(-max(0, now.Sub(since)).Hours() / halfLife.Hours())
	}
	uses := prior
	for _, at := range e.Uses {
		uses += decayed(at)
	}
	lived := halfLife.Hours() / math.Ln2 * (1 - decayed(e.Made))
	return 1 - math.Exp(-uses/(lived+horizon.Hours())*horizon.Hours())
}

// Value returns the expected dollars that keeping the outputs saves; ok is false if their cost is unknown.
func (e *Entry) Value(now time.Time) (dollars float64, ok bool) {
	return e.Cost.Float() * e.Odds(now), e.Priced
}

// density is the value per byte. Outputs of unknown cost are worth more than all others.
func (e *Entry) density(now time.Time) float64 {
	value, ok := e.Value(now)
	if !ok {
		return math.Inf(1)
	}
	return value / float64(max(1, e.Bytes))
}

// Order sorts entries by value per byte, the most valuable first. Of equal ones, the newer comes first, then the name.
func Order(list []Entry, now time.Time) {
	slices.SortStableFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.density(now), a.density(now)), b.Made.Compare(a.Made), strings.Compare(a.Job, b.Job))
	})
}

// Choose returns the entries that go so that the others have at most fit bytes. It keeps all that are needed, though
// they have more, and then in Order each that fits.
func Choose(list []Entry, fit int64, now time.Time) (gone []Entry) {
	order := slices.Clone(list)
	Order(order, now)
	left := fit
	for i := range order {
		if order[i].Needed {
			left -= min(order[i].Bytes, math.MaxInt64/2)
			left = max(left, math.MinInt64/2)
		}
	}
	for _, e := range order {
		switch {
		case e.Needed:
		case e.Bytes <= left:
			left -= e.Bytes
		default:
			gone = append(gone, e)
		}
	}
	return gone
}

package horizon

import (
	"time"

	"scrimp/internal/lib/quantity"
)

// Watch is what was seen of one offer's spot market: its present period and the
// odds from the ones before. The zero Watch has seen nothing. It is a plain
// value: copy it, keep it, compare it. It changes when the market does, and not
// by being looked at more often.
type Watch struct {
	Known bool
	Whole bool      // the present period was seen to begin
	Up    bool      // spot can be had
	Since time.Time // first look that saw the present period
	Odds  Odds      // of the periods before
}

// See returns the watch after a look at the market. A look earlier than the
// present period changes nothing.
func (w Watch) See(at time.Time, up bool) Watch {
	switch {
	case !w.Known:
		return Watch{Known: true, Up: up, Since: at, Odds: w.Odds}
	case up == w.Up || at.Before(w.Since):
		return w
	}
	return Watch{Known: true, Whole: true, Up: up, Since: at, Odds: w.Odds.ended(w.Up, at.Sub(w.Since))}
}

// Market is what is known at a time.
type Market struct {
	Up   bool
	Age  time.Duration // of the present period
	Odds Odds
}

// At returns what is known at now, which is not before Since. A market that was
// never seen to change is taken to be as it is since 100 minutes more.
func (w Watch) At(now time.Time) Market {
	if !w.Known {
		return Market{}
	}
	age := min(max(now.Sub(w.Since), 0), quantity.Forever)
	m := Market{Up: w.Up, Age: age, Odds: w.Odds.lasted(w.Up, age)}
	if !w.Whole {
		m.Age += running
	}
	return m
}

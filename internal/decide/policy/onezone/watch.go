package onezone

import (
	"time"

	"scrimp/internal/lib/quantity"
)

// Watch is what was observed of one offer's spot market: its current period and the odds from earlier ones. The
// zero Watch has observed nothing. It is a plain value that can be copied, stored and compared. It changes when the
// market does, and not with the number of polls.
type Watch struct {
	Known bool
	Whole bool      // the start of the current period was observed
	Up    bool      // spot is available
	Since time.Time // first poll that saw the current period
	Odds  Odds      // of earlier periods
}

// See returns the watch after a poll of the market. A poll before the current period changes nothing.
func (w Watch) See(at time.Time, up bool) Watch {
	switch {
	case !w.Known:
		return Watch{Known: true, Up: up, Since: at, Odds: w.Odds}
	case up == w.Up || at.Before(w.Since):
		return w
	}
	return Watch{Known: true, Whole: true, Up: up, Since: at, Odds: w.Odds.ended(w.Up, at.Sub(w.Since))}
}

// Market is the knowledge about a market at one time.
type Market struct {
	Up   bool
	Age  time.Duration // of the current period
	Odds Odds
	// Losses is how many times more often spot ends for the job than for one machine, because it has several; 0: once.
	Losses float64
}

// At returns what is known at now, which must not be before Since. A market that was never seen to change is
// assumed to have been in its state for 100 minutes more.
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

package horizon

import "time"

// Watch is what was seen of one offer's spot market: its present period and the
// odds from the ones before. The zero Watch has seen nothing. It is a plain
// value: copy it, keep it, compare it.
type Watch struct {
	Known bool
	Up    bool      // spot could be had at Last
	Since time.Time // first look that saw the market as it is
	Last  time.Time // latest look
	Odds  Odds
}

// See returns the watch after a look at the market. step is how often it is
// looked at. A look earlier than the last changes nothing.
func (w Watch) See(at time.Time, up bool, step time.Duration) Watch {
	switch {
	case !w.Known:
		return Watch{Known: true, Up: up, Since: at, Last: at, Odds: w.Odds}
	case at.Before(w.Last):
		return w
	case up != w.Up:
		// The period ended somewhere between the two looks, and began so too.
		w.Odds = w.Odds.Ended(w.Up, w.Last.Sub(w.Since)+step/2, step)
		w.Up, w.Since = up, at
	}
	w.Last = at
	return w
}

// Age is how long the market has been as it is, from the first look that saw it.
func (w Watch) Age(now time.Time) time.Duration {
	if !w.Known || now.Before(w.Since) {
		return 0
	}
	return now.Sub(w.Since)
}

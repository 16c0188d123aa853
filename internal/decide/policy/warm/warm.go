// Package warm decides how long an idle machine is kept for the next job.
//
// An idle machine costs its price, and a terminated one costs the next job a start. It is unknown when that job
// comes. Waiting as long as a start takes, and no longer, never costs more than twice the optimum in hindsight (the
// rent-or-buy problem: Karlin, Manasse, Rudolph and Sleator, "Competitive snoopy caching", 1988). Within that
// bound, earlier gaps decide when to stop sooner.
package warm

import "time"

// known is the number of gaps from which on they are used.
const known = 3

// Keep returns the longest time that a machine waits. start is the time that the next job would need to start on a
// new machine. paid is how long the machine is paid for in any case, for example by a minimum charge. gaps are
// earlier times from the end of a task to the next job. Each gap weighs the cost of waiting for it against the
// start that it saves.
func Keep(start, paid time.Duration, gaps []time.Duration) time.Duration {
	start, paid = max(0, start), max(0, paid)
	if len(gaps) < known {
		return paid + start
	}
	best, gain := paid, worth(paid, start, paid, gaps)
	for _, g := range gaps {
		if g <= paid || g > paid+start {
			continue
		}
		if w := worth(g, start, paid, gaps); w > gain || w == gain && g < best {
			best, gain = g, w
		}
	}
	return best
}

// worth is the machine time that keeping a machine that long would have saved over the gaps.
func worth(keep, start, paid time.Duration, gaps []time.Duration) (saved time.Duration) {
	for _, g := range gaps {
		if g <= keep {
			saved += start
		}
		saved -= max(0, min(g, keep)-paid)
	}
	return saved
}

// Package warm says how long a machine whose task is over is kept for the next job.
//
// A machine that waits costs its price; one that is given back costs the next job a start.
// Nobody knows when that job comes. To wait as long as a start takes, and no longer, never
// costs more than twice what hindsight would (the rent-or-buy problem: Karlin, Manasse,
// Rudolph and Sleator, "Competitive snoopy caching", 1988). Within that bound what was seen
// of earlier gaps says when to stop sooner.
package warm

import "time"

// known is from how many gaps on they are trusted.
const known = 3

// Keep is how long a machine waits at most. start is what the next job would spend until
// its work begins on a new machine; paid is how long the machine is paid for anyway, as by a
// minimum charge; gaps are earlier times from the end of a task until the next was
// there. A gap counts what it would have cost to wait for it against the start that it saves.
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

// worth is what keeping a machine for so long would have saved over those gaps, in machine time.
func worth(keep, start, paid time.Duration, gaps []time.Duration) (saved time.Duration) {
	for _, g := range gaps {
		if g <= keep {
			saved += start
		}
		saved -= max(0, min(g, keep)-paid)
	}
	return saved
}

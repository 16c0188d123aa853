package budget

import (
	"slices"
	"time"
)

// Begins returns when waiting jobs are expected to get their turns: the 10 %, the median and the 90 % of the plays that
// Foresee makes, counted from now. A job of unknown duration keeps its place, so the jobs that need that place have no
// entry.
func Begins(limits []Limit, courses []Course, places int, now time.Time) map[string][3]time.Duration {
	courses = sane(courses, places)
	b := board{limits, map[string]Use{}, courses, places, now}
	begun := map[int][]time.Duration{}
	for n := range plays {
		b.begins(func(i int) time.Duration {
			if !courses[i].Known {
				return forever
			}
			return courses[i].drawn(share(n, i))
		}, func(i int, after time.Duration) { begun[i] = append(begun[i], after) })
	}
	turns := map[string][3]time.Duration{}
	for i, list := range begun {
		slices.Sort(list)
		var v [3]time.Duration
		if plays-len(list) > plays/10 {
			continue // it gets no turn in too many plays
		}
		for q, at := range []int{plays / 10, plays / 2, plays - 1 - plays/10} {
			v[q] = list[min(at, len(list)-1)]
		}
		turns[courses[i].ID] = v
	}
	return turns
}

// begins runs one play until each waiting job has had its turn, and reports the turns.
func (b *board) begins(lasts func(int) time.Duration, turn func(i int, after time.Duration)) {
	p := b.start(lasts)
	p.turn = turn
	for t := b.now; ; t = p.end() {
		p.fill(t)
		if len(p.waits) == 0 || len(p.run) == 0 || p.run[0].over.Sub(b.now) >= forever {
			return
		}
	}
}

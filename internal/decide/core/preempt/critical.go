package preempt

import (
	"slices"

	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/state"
)

// critical is the priority of jobs that may preempt others.
const critical = 2

// waiting returns critical jobs that wait, the most urgent first. The first is the most urgent of all; of each
// subqueue it looks only at the first entries of the heap. The list is valid until the next call: every step asks.
func (p *Preempter) waiting() []*state.Job {
	list := p.found[:0]
	for _, c := range p.queue.Queue.Classes {
		for _, s := range c.Subqueues {
			if s.Group.Equivalence.Unschedulable {
				continue
			}
			for _, u := range s.Sides[:queue.OverQuota] {
				if len(u) == 0 || u[0].Terms().Priority < critical { // the first has the highest priority
					continue
				}
				for _, j := range u[:min(len(u), mostCritical)] {
					if j.Terms().Priority >= critical {
						list = append(list, j)
					}
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b *state.Job) int {
		switch {
		case queue.Before(a, b):
			return -1
		case queue.Before(b, a):
			return 1
		}
		return 0
	})
	p.found = list
	return list[:min(len(list), mostCritical)]
}

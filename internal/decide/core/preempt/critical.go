package preempt

import (
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/state"
)

// critical is the priority of jobs that may preempt others.
const critical = 2

// waiting returns critical jobs that wait, in no order: of each subqueue those among the first entries of the heap. The
// list is valid until the next call: every step asks.
func (p *Preempter) waiting() []*state.Job {
	p.found = p.found[:0]
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
						p.found = append(p.found, j)
					}
				}
			}
		}
	}
	return p.found
}

// compare orders jobs by urgency, the most urgent first.
func compare(a, b *state.Job) int {
	switch {
	case queue.Before(a, b):
		return -1
	case queue.Before(b, a):
		return 1
	}
	return 0
}

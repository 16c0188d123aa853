package queue

import (
	"slices"

	"scrimp/internal/decide/state"
)

// Critical is the priority of jobs that may preempt others.
const Critical = 2

// Critical returns critical jobs that wait, the most urgent first. The first is the most urgent of all; of each
// subqueue it looks only at the first entries of the heap.
func (q *Queue) Critical(most int) (list []*state.Job) {
	for _, c := range q.Classes {
		for _, p := range c.Subqueues {
			if p.Group.Equivalence.Unschedulable {
				continue
			}
			for _, u := range p.Sides[:OverQuota] {
				if len(u) == 0 || u[0].Terms().Priority < Critical {
					continue
				}
				for _, j := range u[:min(len(u), most)] {
					if j.Terms().Priority >= Critical {
						list = append(list, j)
					}
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b *state.Job) int {
		switch {
		case Before(a, b):
			return -1
		case Before(b, a):
			return 1
		}
		return 0
	})
	return list[:min(len(list), most)]
}

// First puts j among the jobs to be tried, where it is the first that the step tries.
func (q *Queue) First(j *state.Job) {
	q.Remove(j)
	q.Add(j)
}

// Without calls f with the quotas as if the given jobs, which run, had left their machines.
func (qs *Quotas) Without(gone []*state.Job, f func()) {
	kept := qs.Sums
	sums := qs.tallies(qs.Now())
	for _, j := range gone {
		gpus := 0
		for _, a := range j.Open() {
			if a.Live() {
				gpus += a.GPUs()
			}
		}
		for _, q := range qs.ClassOf(j).Quotas {
			sums[q.n].running--
			sums[q.n].gpus -= gpus
		}
	}
	qs.Sums = sums
	f()
	qs.Sums = kept
}

// RoomWithout reports whether one more job may hold a machine once that many have left theirs.
func (qs *Quotas) RoomWithout(gone int) bool {
	running, most, _ := qs.Full()
	return running-gone < most && !qs.State.Undecided()
}

// Holds reports whether j is under the quota.
func (qs *Quotas) Holds(q *Quota, j *state.Job) bool { return slices.Contains(qs.ClassOf(j).Quotas, q) }

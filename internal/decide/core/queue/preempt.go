package queue

import (
	"slices"

	"scrimp/internal/decide/state"
)

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

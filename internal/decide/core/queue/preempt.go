package queue

import (
	"slices"

	"scrimp/internal/decide/core/quota"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

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
			sums[q.N].Running--
			sums[q.N].GPUs -= gpus
			sums[q.N].Rate -= step.Burns(j)
		}
	}
	qs.Sums = sums
	f()
	qs.Sums = kept
}

// Holds reports whether j is under the quota.
func (qs *Quotas) Holds(q *quota.Quota, j *state.Job) bool {
	return slices.Contains(qs.ClassOf(j).Quotas, q)
}

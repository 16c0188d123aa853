// Package preempt lets a critical job that has no room take the seats of less urgent jobs: it chooses the jobs whose
// preemption costs least, and makes them save and leave.
package preempt

import (
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/lifecycle"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// Preempter preempts jobs for critical ones.
type Preempter struct {
	*step.Context
	admission *admission.Admission
	queue     *queue.Quotas
	market    *placement.Market
	decider   *placement.Decider
	jobs      *lifecycle.Jobs

	found   []*state.Job // what waiting returned last; its room is used again
	weighed int          // offers weighed in this step
	again   time.Time    // when a fruitless search is repeated at the earliest; it is not part of the state
}

// New returns a Preempter over the parts below it.
func New(a *admission.Admission, q *queue.Quotas, m *placement.Market, d *placement.Decider,
	j *lifecycle.Jobs) *Preempter {
	return &Preempter{Context: a.Context, admission: a, queue: q, market: m, decider: d, jobs: j}
}

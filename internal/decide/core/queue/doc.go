// Package queue keeps the jobs that wait, the most urgent first, and the quotas for which they may wait.
package queue

import (
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// Quotas are the limits that the queue keeps, with the queue.
type Quotas struct {
	*step.Context
	admission *admission.Admission

	Queue  Queue
	Quotas []*Quota // by name
	era    int      // how often they changed
	Sums   []Tally  // of what runs under them now; nil: not summed

	Keeping *state.Job    // whose gang is being made up again
	Keeps   []*state.Task // on these machines of it
}

// New is an empty queue without a quota.
func New(c *step.Context, a *admission.Admission) *Quotas { return &Quotas{Context: c, admission: a} }

// Package queue keeps the waiting jobs, the most urgent first, and the quotas that they may wait for.
package queue

import (
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/quota"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/state"
	"scrimp/money"
)

// Quotas is the queue with the limits that it keeps.
type Quotas struct {
	*step.Context
	admission *admission.Admission

	Queue  Queue
	Quotas []*quota.Quota // by name
	steps  uint64         // steps since the start
	rated  bool           // jobs are in the order for a limit of dollars an hour
	era    int            // incremented when the quotas change
	Sums   []quota.Tally  // what runs under each quota now; nil: not summed
	places fair.Shares    // places of the teams, for the same moment as Sums
	placed bool           // places are computed

	held    map[string]*fair.Use // by team as jobs name it: what jobs hold, but for those in touched; nil: not summed
	touched []*state.Job         // jobs that changed since

	// Cheapest returns the lowest price an hour of a machine for a job now; ok is false if nothing is available.
	Cheapest func(*state.Job) (rate money.Rate, ok bool)

	Keeping *state.Job    // job whose gang is regrouping
	Keeps   []*state.Task // on these machines of the gang
}

// New returns an empty queue without quotas.
func New(c *step.Context, a *admission.Admission) *Quotas { return &Quotas{Context: c, admission: a} }

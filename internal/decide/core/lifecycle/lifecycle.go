// Package lifecycle leads jobs from their submission to their end: launches, attempts on one machine or a gang,
// instances with their seats, what waits warm, and the archive.
package lifecycle

import (
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/books"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// Below are the parts below this package, which all of its own use.
type Below struct {
	*step.Context
	books     *books.Books
	admission *admission.Admission
	queue     *queue.Quotas
	market    *placement.Market
	decider   *placement.Decider
	bids      *placement.Bids
}

// Under names the parts below.
func Under(b *books.Books, a *admission.Admission, q *queue.Quotas, m *placement.Market, d *placement.Decider,
	bids *placement.Bids) Below {
	return Below{b.Context, b, a, q, m, d, bids}
}

// Jobs begin, wait for others, pause, change and end.
type Jobs struct {
	Below
	*Parts
	Watcher Watcher
	Waiters map[string][]string // jobs and groups that wait, by the job or group that they wait for
	Added   *state.Job          // that the step has put into the queue; nil: none
}

// Launches ask for machines, and take the answers.
type Launches struct {
	Below
	*Parts
}

// Attempts are what runs of jobs.
type Attempts struct {
	Below
	*Parts
}

// Instances are the machines, with their seats.
type Instances struct {
	Below
	*Parts
	freedReserved bool // a reserved machine came free in this step
}

// Mover asks for rounds, and moves jobs as they propose.
type Mover struct {
	Below
	*Parts
}

// Parts are those of this package.
type Parts struct {
	jobs      *Jobs
	launches  *Launches
	attempts  *Attempts
	instances *Instances
	mover     *Mover
}

// New are the parts over those below. Who watches jobs is to be set.
func New(b Below) (*Jobs, *Launches, *Attempts, *Instances, *Mover) {
	p := &Parts{}
	p.jobs = &Jobs{Below: b, Parts: p, Waiters: map[string][]string{}}
	p.launches, p.attempts = &Launches{b, p}, &Attempts{b, p}
	p.instances, p.mover = &Instances{Below: b, Parts: p}, &Mover{b, p}
	return p.jobs, p.launches, p.attempts, p.instances, p.mover
}

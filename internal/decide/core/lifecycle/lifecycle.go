// Package lifecycle takes jobs from submission to end: launches, attempts on one machine or a gang, instances with
// their seats, idle machines, and the archive.
package lifecycle

import (
	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Below has the packages below this one. All parts use it.
type Below struct {
	*step.Context
	books     *accounting.Books
	admission *admission.Admission
	queue     *queue.Quotas
	market    *placement.Market
	decider   *placement.Decider
	bids      *placement.Bids
}

// Under returns a Below of the given parts.
func Under(b *accounting.Books, a *admission.Admission, q *queue.Quotas, m *placement.Market, d *placement.Decider,
	bids *placement.Bids) Below {
	return Below{b.Context, b, a, q, m, d, bids}
}

// Jobs starts, queues, pauses, changes and ends jobs.
type Jobs struct {
	Below
	*Parts
	Watcher Watcher
	Waiters map[string][]string // waiting jobs and groups, by the job or group that they wait for
	Added   *state.Job          // job that the step has put into the queue; nil: none
}

// Launches requests machines and handles the answers.
type Launches struct {
	Below
	*Parts
}

// Attempts handles running attempts.
type Attempts struct {
	Below
	*Parts
}

// Instances handles machines and their seats.
type Instances struct {
	Below
	*Parts
	freed []market.OfferID // offers whose reserved machines became free in this step
	kept  []state.Keep     // parts that were still kept when KeepsEnded last looked
}

// Mover requests rounds, and moves jobs as they propose.
type Mover struct {
	Below
	*Parts
}

// Parts are the parts of this package.
type Parts struct {
	jobs      *Jobs
	launches  *Launches
	attempts  *Attempts
	instances *Instances
	mover     *Mover
}

// New returns the parts of this package over those below. The caller must set the Watcher of Jobs.
func New(b Below) (*Jobs, *Launches, *Attempts, *Instances, *Mover) {
	p := &Parts{}
	p.jobs = &Jobs{Below: b, Parts: p, Waiters: map[string][]string{}}
	p.launches, p.attempts = &Launches{b, p}, &Attempts{b, p}
	p.instances, p.mover = &Instances{Below: b, Parts: p}, &Mover{b, p}
	return p.jobs, p.launches, p.attempts, p.instances, p.mover
}

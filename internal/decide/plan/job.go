package plan

import (
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Job is the job that a decision is for.
type Job struct {
	Need Need
	Rule policy.Rule // empty: the default
	// Progress counts the work on a machine of speed 1.
	Progress policy.Progress
	Held     market.OfferID // empty if no machine is held
	Variant  string         // variant of the work on the held machine
	// HeldUnits is the number of processors, or of accelerators if the job requests them, that it has on a held
	// machine that tasks share; 0: those of a machine of its own.
	HeldUnits int
	// Crowded is set if others wait that may share a machine with this job, so that it has no more than its least
	// number of processors or accelerators of a machine that tasks share.
	Crowded bool
	Unread  bool // the held machine has yet to read the inputs of the job
	// Open says which rungs of the ladder are open; nil: all.
	Open     []bool
	HeldRate money.Rate    // billing rate of the held machine
	Warming  time.Duration // time until the held machine makes progress; 0: it does now
	Left     money.Amount  // of the budget
	// DueElsewhere is the rest of a minimum charge that the held machine still bills after the job leaves it.
	DueElsewhere money.Amount
	Limited      bool          // whether there is a budget
	Unsaved      time.Duration // work done on the held machine that no checkpoint has yet
	Unsaving     bool          // the job saves nothing: each machine starts the work from scratch
	Grace        time.Duration // longest time of a last save
	Rough        bool          // the pace behind Progress.Left was hardly measured
	Sooner       bool          // a target or plateau may end the job before its work is done
	// CheckpointRegion is empty before the first machine. Moving the checkpoint to another region adds Transfer to
	// a restart and costs EgressCost.
	CheckpointRegion string
	Transfer         time.Duration
	EgressCost       money.Amount
	Egress           zonechoice.Egress // routes with another cost
	// Losses is how many times more often the job is interrupted than one machine, because it has several; 0: once.
	Losses float64
	// ID identifies the job in the planner's state between decisions.
	ID string
	// UnsavedLosses counts interrupted machines that lost all the work done there because the job saves nothing.
	UnsavedLosses int
	// MigratingTo is the offer that the job left its machine for; empty: none.
	MigratingTo market.OfferID
	// Pending is an offer with an unanswered request of this job; it counts as unavailable.
	Pending market.OfferID
	// TableSince is Decision.TableSince of the previous decision; zero: it had its table.
	TableSince time.Time
	// Probes counts the probes of offers that nobody had tried. Probed is set if the last one was for this
	// decision.
	Probes int
	Probed bool
	// GPURoom is the largest number of GPUs that a machine may have under the quotas.
	GPURoom    int
	GPULimited bool
	// RateRoom is the highest price an hour that a machine may have under the quotas.
	RateRoom    money.Rate
	RateLimited bool
	// Reserved states how the job may use each reserved offer; offers that it does not name are free.
	Reserved []Reservation
	// Unreserved decides as if nothing were reserved.
	Unreserved bool
	// DeadlineFirst gives the deadline precedence if budget and deadline cannot both hold.
	DeadlineFirst bool
}

// moving returns the cost of moving the checkpoint to the region of o.
func (job *Job) moving(o *Option) money.Amount {
	return job.Egress.Moving(job.CheckpointRegion, o.Offer.Region, job.EgressCost)
}

// migrates reports whether going to o moves the checkpoint to another region.
func (job *Job) migrates(o *Option) bool {
	return job.CheckpointRegion != "" && o.Offer.Region != job.CheckpointRegion
}

// moveCosts reports whether some move of the checkpoint takes time or money. The published policies count every
// move.
func (job *Job) moveCosts() bool {
	return job.Transfer > 0 || !job.EgressCost.IsZero() || len(job.Egress) > 0 || !job.byDefault()
}

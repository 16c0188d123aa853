package plan

import (
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/place"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Job is what a decision is taken for.
type Job struct {
	Need Need
	Rule policy.Rule // "": the default
	// Progress counts the work on a machine of speed 1.
	Progress policy.Progress
	Held     market.OfferID // "" when no machine is held
	Variant  string         // in which the work is done on it
	// Open says which rungs of the ladder are open; nil: all.
	Open     []bool
	HeldRate money.Rate    // what it is billed at
	Warming  time.Duration // until the held machine works; 0: it does
	Left     money.Amount  // of the budget
	// DueElsewhere is what a minimum charge still bills for the held machine once the job goes to another one.
	DueElsewhere money.Amount
	Limited      bool          // whether there is a budget
	Unsaved      time.Duration // work done on the held machine that is in no checkpoint yet
	Unsaving     bool          // nothing ever is: each machine begins the work anew
	Grace        time.Duration // that a last save may take
	Rough        bool          // what is left is counted at a pace that was hardly seen yet
	Sooner       bool          // a target or a plateau may end it before its work is done
	// CheckpointRegion is "" before the first machine. Taking the checkpoint to another
	// region adds Transfer to a restart, and costs EgressCost.
	CheckpointRegion string
	Transfer         time.Duration
	EgressCost       money.Amount
	Egress           place.Egress // the routes that cost something else
	// ID tells jobs apart, for what is kept between two decisions.
	ID string
	// UnsavedLosses counts the machines that were interrupted with all the work done there,
	// because the job saves nothing.
	UnsavedLosses int
	// MigratingTo is the offer that it left its machine for; "": none.
	MigratingTo market.OfferID
	// Pending is an offer that it asked for and that was not answered yet: it is not to be had.
	Pending market.OfferID
	// TableSince is that of the decision before; zero: it had its table.
	TableSince time.Time
	// Probes counts the questions whether an offer can be had that nobody had tried; Probed
	// says that the last was for this decision.
	Probes int
	Probed bool
	// GPURoom is how many GPUs a machine may have, where quotas limit that.
	GPURoom    int
	GPULimited bool
	// Reserved says of what is reserved how the job may have it; what is not named is free.
	Reserved []Reservation
	// Unreserved decides as if nothing were reserved.
	Unreserved bool
	// DeadlineFirst lets the deadline win where budget and deadline cannot both hold.
	DeadlineFirst bool
}

// moving is what it costs to bring the checkpoint to where o is.
func (job *Job) moving(o *Option) money.Amount {
	return job.Egress.Moving(job.CheckpointRegion, o.Offer.Region, job.EgressCost)
}

// migrates reports whether going to o takes the checkpoint to another region.
func (job *Job) migrates(o *Option) bool {
	return job.CheckpointRegion != "" && o.Offer.Region != job.CheckpointRegion
}

// moveCosts reports whether some move of the checkpoint takes time or money. To the published policies every move
// counts.
func (job *Job) moveCosts() bool {
	return job.Transfer > 0 || !job.EgressCost.IsZero() || len(job.Egress) > 0 || !job.byDefault()
}

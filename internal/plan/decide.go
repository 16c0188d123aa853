// Package plan holds the decision where money is spent.
package plan

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/policy"
	"scrimp/internal/policy/horizon"
)

// Version names the rules of this package in the log, so that a recorded
// decision says which rules took it.
const Version = "horizon/1"

// Reason says why an option was taken or not. It is a metric label and a column
// of `scrimp explain`, so the set is small and closed.
type Reason string

// Why an option was taken.
const (
	Cheapest   Reason = "cheapest"           // least per unit of work of all that the mode allows
	Stays      Reason = "stays"              // it is held, and moving would not pay
	SlackGone  Reason = "slack_gone"         // only capacity that cannot be taken away is in time
	ByRule     Reason = "by_rule"            // the job or its policy asks for capacity that cannot be taken away
	BehindPace Reason = "behind_pace"        // no spot, and waiting would use up the slack
	WaitsMore  Reason = "waiting_costs_more" // waiting for spot is expected to cost more than on-demand
	WaitsSpot  Reason = "waits_spot"         // spot is expected in time
	NoOffer    Reason = "no_offer"           // nothing on the market fits the job
	NoCapacity Reason = "no_capacity"        // what fits cannot be had now
	Prepaid    Reason = "already_paid"       // it is reserved, and costs nothing more
	Looking    Reason = "looking"            // whether an offer can be had is asked first
	Weighing   Reason = "weighing"           // the table that says what each choice costs is being built
	SavesNone  Reason = "saves_nothing"      // what spot could take away would be done anew from its start
	BudgetGone Reason = "budget_gone"        // no option starts within the budget
	BudgetWait Reason = "waits_budget"       // what can be had would not finish within the budget, and something cheaper would
	OutOfMoney Reason = "budget_short"       // not even the cheapest would
	TimeGone   Reason = "time_gone"          // its wall-clock is used up
	HoursGone  Reason = "hours_gone"         // its GPU-hours are used up
)

// Why an option was not taken.
const (
	CostsMore   Reason = "costs_more"        // it would do, and is beaten on price
	Unavailable Reason = "unavailable"       // cannot be had now
	Untried     Reason = "untried"           // nobody knows whether it can be had
	Unpriced    Reason = "unpriced"          // its price is unknown, which is not zero
	LaterRung   Reason = "later_rung"        // of the ladder, which is not reached yet, or rests
	WrongGPU    Reason = "wrong_accelerator" // none, another, or too few
	TooSmall    Reason = "too_small"         // fewer processors or less memory than the job asks for
	WrongPlace  Reason = "wrong_place"       // not in a zone or region that the job allows
	WrongKind   Reason = "wrong_kind"        // a kind of capacity that the job does not allow
	OverPrice   Reason = "over_max_price"
	OverBudget  Reason = "over_budget" // its first minutes would pass the budget, or what is left of the work would
	OverQuota   Reason = "over_quota"  // has more GPUs than a quota has left
	TooRisky    Reason = "too_risky"   // could be taken away, and there is no slack for that
	NotYet      Reason = "not_yet"     // waiting is expected to cost less, and there is time for that
	Promised    Reason = "promised"    // reserved, and kept for a job that would pay more elsewhere or is more urgent
	EndsSoon    Reason = "ends_soon"   // reserved for too short a time to go there
	CoolingOff  Reason = "cooling_off" // refused a launch a moment ago
	Moving      Reason = "moving"      // cheaper, but not by more than the move costs
)

// Option is an offer with its quote, as the job sees it.
type Option struct {
	Offer   market.Offer
	Quote   market.Quote
	Cooling bool           // it refused a launch a moment ago
	Watch   *horizon.Watch // what was seen of it, for spot; nil: nothing
	Record  *Record        // how it came and went, for spot, as several zones are weighed; nil: nobody looked
	Low     Low            // the least that it was for sale for
	Kept    bool           // it is paid already, and goes to a job that would pay more elsewhere or is more urgent

	way   int     // of doing the work on it: 0 the job's own, then the variants
	speed float64 // of the work on it, done that way
}

// Low is the lowest price at which an offer could be had.
type Low struct {
	Rate  money.Rate `json:"rate"`
	Known bool       `json:"known,omitempty"`
}

// Job is what a decision looks at.
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
	Limited  bool          // whether there is a budget
	Unsaved  time.Duration // work done on the held machine that is in no checkpoint yet
	Unsaving bool          // nothing ever is: each machine begins the work anew
	Grace    time.Duration // that a last save may take
	Rough    bool          // what is left is counted at a pace that was hardly seen yet
	Sooner   bool          // a target or a plateau may end it before its work is done
	// Home is the region of the checkpoint; "" before the first machine. Taking it
	// to another adds Transfer to a restart, and costs Carry.
	Home     string
	Transfer time.Duration
	Carry    money.Amount
	// ID tells jobs apart, for what is kept between two decisions.
	ID string
	// Wasted counts the machines that were taken with all the work done there,
	// because the job saves nothing.
	Wasted int
	// Bound is the offer that it left its machine for; "": none.
	Bound market.OfferID
	// TableSince is that of the decision before; zero: it had its table.
	TableSince time.Time
	// Looks counts the looks at offers that nobody had tried; Looked says that
	// the last was for this decision.
	Looks  int
	Looked bool
	// GPURoom is how many GPUs a machine may have, where quotas limit that.
	GPURoom    int
	GPULimited bool
	// DeadlineFirst lets the deadline win where budget and deadline cannot both hold.
	DeadlineFirst bool
}

// Rejection is an option and why it was not taken.
type Rejection struct {
	Offer  market.OfferID `json:"offer"`
	Rate   money.Rate     `json:"rate"`
	Priced bool           `json:"priced"`
	Why    Reason         `json:"why"`
}

// Decision is what was taken and why; Take is "" for waiting.
type Decision struct {
	Take     market.OfferID `json:"take,omitempty"`
	Rate     money.Rate     `json:"rate,omitempty"`
	Variant  string         `json:"variant,omitempty"` // in which the work is done; "": the job's own way
	Why      Reason         `json:"why"`
	Mode     policy.Mode    `json:"mode"`
	Slack    time.Duration  `json:"slack_ns,omitempty"`
	HasSlack bool           `json:"has_slack,omitempty"`
	Doubt    time.Duration  `json:"doubt_ns,omitempty"` // how much longer the work may take, within the promise
	Speed    float64        `json:"speed,omitempty"`    // of the machine on which the slack is counted; 0: 1
	Rejected []Rejection    `json:"rejected,omitempty"`
	// Look is an offer to ask about before anything else is done.
	Look market.OfferID `json:"look,omitempty"`
	// Expect is what each choice was expected to cost, where that was weighed.
	Expect *Expect `json:"expect,omitempty"`
	// Purse is set where a budget that comes first kept an option from being taken.
	Purse *Purse `json:"purse,omitempty"`
	// Table is what the job's future is weighed with and the planner lacks: see
	// Mind.Adopt. It is asked for, and not recorded: a KB for each of many decisions.
	Table *TableRequest `json:"-"`
	// TableSince says since when the job has been decided without its table.
	TableSince time.Time `json:"table_since,omitzero"`
	// Again is when time alone could change the decision; zero: never.
	Again time.Time `json:"again,omitzero"`
}

// Decide is Mind.Decide where nothing is kept for the next decision.
func Decide(job Job, options []Option) Decision { return NewMind().Decide(job, options) }

// Decide takes the option that does the work for the least money among those
// that the deadline allows. Ties go to the held machine, then to the name, so that equal
// input gives equal output whatever the order it came in.
func (m *Mind) Decide(job Job, options []Option) Decision {
	d := m.decide(&job, options)
	d.Rejected = m.share(d.Rejected)
	return d
}

// share returns a list of its own of what was rejected: the newest one where that says
// the same, as it does for most jobs and at most times; nil where nothing was.
func (m *Mind) share(rejected []Rejection) []Rejection {
	if len(rejected) == 0 {
		return nil
	}
	if !slices.Equal(rejected, m.rejected) {
		m.rejected = slices.Clone(rejected)
	}
	return m.rejected
}

func (m *Mind) decide(job *Job, options []Option) Decision {
	s := m.room.sort(job, options)
	v := s.view(job)
	if job.Open != nil && v.Guard(v.Working()) { // what is in time is allowed whatever the ladder says
		job.Open = nil
		s = m.room.sort(job, options)
		v = s.view(job)
	}
	d := Decision{Rejected: s.rejected, Purse: s.purse.shown()}
	zones := s.several(job)
	if zones != nil && !placeable(&v) {
		zones = nil
	}
	if at, ok := s.look(job, &v); ok && zones == nil {
		d.Look, d.Why = at, Looking
		return d
	}
	d.Speed = s.speed()
	d.Mode = v.Mode(v.Working())
	d.Slack, d.HasSlack = v.Slack(job.Held != "")
	d.Slack -= v.Warming
	d.Doubt = v.Doubt
	choice := policy.Choose(cmp.Or(job.Rule, policy.Default), v)
	if job.Need.Critical {
		choice, d.Mode = policy.Firm, policy.Certain
	}
	step, foresaw := time.Duration(0), false
	lost := choice == policy.Firm && v.Working() && !job.Need.Critical && job.Rule != policy.OnDemand && s.firm != nil && late(job, s.firm)
	var take *Option
	switch {
	case lost:
		choice = policy.Spot // what works may be in time, and nothing else is
	case s.whole(job, &v):
		zones, foresaw = nil, true
		choice, step = m.tryWhole(&d, job, &s, &v)
	case zones != nil:
		var look market.OfferID
		if take, look = m.place(&d, job, &s, &v, zones); look != "" {
			d.Look = look
			return d
		}
		choice, step, foresaw = chosen(take), tickOf(&v), true
	case s.foreseeable(job, &v):
		choice, step = m.foresee(&d, job, &s, &v)
		foresaw = true
	}
	if d.Table != nil {
		m.meanwhile(&d, job, &s, &v, step)
		return d
	}
	wasteful := job.Wasted >= wasted && s.firm != nil && choice != policy.Firm && (!job.Unsaving || !foresaw)
	if wasteful {
		choice, zones, foresaw = policy.Firm, nil, false
	}
	if choice == policy.Wait && len(job.Need.Ladder) > 0 && s.firm != nil {
		choice = policy.Firm // the job file says that the rung before has been waited for long enough
		zones = nil
	}
	if zones == nil {
		take = s.take(&d, job, &v, choice, foresaw)
		if take != nil && take == s.firm && take != s.held && (wasteful || job.Unsaving && foresaw) {
			d.Why = SavesNone
		}
	}
	for _, o := range s.usable {
		if take == nil || o.Offer.ID != take.Offer.ID {
			d.Rejected = append(d.Rejected, rejection(o, against(o, take, choice, take == s.held && d.Mode != policy.Certain, foresaw)))
		}
	}
	if take != nil {
		if prepaid(take) && take != s.held {
			d.Why = Prepaid
		}
		d.Take, d.Rate = take.Offer.ID, take.Quote.Rate
		if take.way > 0 {
			d.Variant = job.Need.Variants[take.way-1].Name
		}
	}
	switch {
	case foresaw:
		d.Again = s.again(&v, choice, step)
	case take == nil && choice == policy.Firm:
		if !v.Guard(v.Working()) {
			d.Again, _ = v.GuardAt(v.Working()) // then the ladder counts no more
		}
	case lost: // time changes nothing any more
	case choice == policy.Wait || take != nil && take.Offer.Capacity == market.Spot:
		d.Again = policy.Again(cmp.Or(job.Rule, policy.Default), v, choice)
	}
	if take == nil && d.Again.IsZero() && len(s.untried) > 0 && d.Why == BudgetWait { // somebody has to look
		d.Again = v.Now.Add(max(v.Look, v.Detect, time.Minute))
	}
	return d
}

// wasted is how many machines a job that saves nothing loses before it is kept off
// what can be taken: begun anew for ever, it would never end.
const wasted = 3

// chosen is the kind of capacity that was taken.
func chosen(o *Option) policy.Choice {
	switch {
	case o == nil:
		return policy.Wait
	case o.Offer.Capacity == market.Spot:
		return policy.Spot
	}
	return policy.Firm
}

// take finds the option for the rule's choice, and sets d.Why.
func (s *sorted) take(d *Decision, job *Job, v *policy.View, choice policy.Choice, foresaw bool) *Option {
	why := func(r Reason, o *Option) *Option { d.Why = r; return o }
	heldFirm := s.held != nil && s.held.Offer.Capacity != market.Spot
	switch {
	case s.fits == 0 && s.later:
		return why(NoCapacity, nil)
	case s.fits == 0:
		return why(NoOffer, nil)
	case s.affordable == 0:
		return why(s.broke(), nil)
	case choice == policy.Firm && heldFirm && (s.firm == s.held || !pays(job, v, s.held, s.firm)):
		return why(Stays, s.held)
	case choice == policy.Firm && s.firm != nil:
		return why(whyFirm(job, v, heldFirm, foresaw), s.firm)
	case s.held != nil && (choice == policy.Firm || choice == policy.Spot && s.held == s.spot):
		if s.held == s.spot && s.firm != nil && perWork(s.firm) <= perWork(s.held) && pays(job, v, s.held, s.firm) {
			return why(Cheapest, s.firm) // its price rose over what cannot be taken away
		}
		if o := s.faster(job, v); o != nil && choice == policy.Spot {
			return why(Cheapest, o)
		}
		return why(Stays, s.held)
	case s.spot != nil && choice != policy.Wait && !job.Need.Critical:
		if job.Rule == "" || job.Rule == policy.Default {
			if s.held != nil && (!foresaw || !heldFirm) && !pays(job, v, s.held, s.spot) {
				return why(Stays, s.held)
			}
		}
		return why(Cheapest, s.spot)
	case s.purse.kept:
		return why(BudgetWait, nil)
	case choice == policy.Wait && s.sold:
		return why(WaitsSpot, nil)
	}
	return why(NoCapacity, nil)
}

// whyFirm says why firm capacity is taken that is not held.
func whyFirm(job *Job, v *policy.View, moves, foresaw bool) Reason {
	slack, timed := v.Slack(true)
	behind, _ := v.Behind(0)
	switch {
	case job.Need.Critical || job.Rule == policy.OnDemand:
		return ByRule
	case moves || !v.Sold:
		return Cheapest
	case foresaw:
		return WaitsMore
	case timed && slack < 2*v.Restart+v.Reserve+v.Detect+v.Doubt+v.Look:
		return SlackGone
	case behind:
		return BehindPace
	}
	return ByRule
}

// against says why o was not taken though it could have been; take is nil for waiting.
func against(o, take *Option, choice policy.Choice, stays, foresaw bool) Reason {
	spot := o.Offer.Capacity == market.Spot
	switch {
	case take == nil && spot && !foresaw:
		return TooRisky
	case take == nil:
		return NotYet
	case perWork(o) >= perWork(take):
		return CostsMore
	case spot && take.Offer.Capacity != market.Spot && choice == policy.Firm && !stays:
		return TooRisky
	}
	return Moving
}

func rejection(o *Option, why Reason) Rejection {
	return Rejection{Offer: o.Offer.ID, Rate: o.Quote.Rate, Priced: o.Quote.Priced, Why: why}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

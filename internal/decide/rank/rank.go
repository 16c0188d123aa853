// Package rank ranks plans for a job, which are combinations of an offer, a number of machines and a variant, on
// spot or not. It ranks by expected cost, finish and probability of being in time. It explains why each other
// option is not taken, what would be cheaper, and, if nothing is feasible, which budget or deadline would be.
//
// Offers with the same accelerator and count share an estimate; prices only rank them. The formulas are in
// docs/formulas.md, section "Ranked plans".
package rank

import (
	"math"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/egress"
)

// Reason is why an option is not taken. The set is closed, because it is a metric label.
type Reason string

// Reasons for not taking an option.
const (
	CostsMore           Reason = "costs_more"            // suitable, but another is expected to cost less
	TooSlow             Reason = "too_slow"              // the deadline is less likely than promised
	OverBudget          Reason = "over_budget"           // its expected cost exceeds the budget
	DoesNotFit          Reason = "does_not_fit"          // its accelerators lack the memory
	NoPrecision         Reason = "no_precision"          // its accelerators do not support the job's format
	InferenceOnly       Reason = "inference_only"        // its accelerators only serve models
	InterruptedTooOften Reason = "interrupted_too_often" // spot: more work is lost than done
	// its machines end before the work, and the job saves nothing
	OutlivesMachine Reason = "outlives_machine"
	NoEstimate      Reason = "no_estimate"    // its speed is unknown
	Unpriced        Reason = "unpriced"       // its price is unknown, which is not zero
	OtherCurrency   Reason = "other_currency" // nothing is converted without a dated rate
	OverPrice       Reason = "over_max_price"
	WrongPlace      Reason = "wrong_place" // not in a region that the job allows
	WrongKind       Reason = "wrong_kind"  // a kind of capacity that the job does not allow
	// its price is paid for one or three years whether used or not, which no plan of one job buys
	NeedsCommitment Reason = "needs_commitment"
	ManagedPlatform Reason = "managed_platform" // no engine runs jobs there; its price is only for comparison
	// the same machine is for sale as plain spot, which ends after no fixed time and costs no more
	SameAsSpot   Reason = "same_as_spot"
	OtherMachine Reason = "other_machine" // does not meet the job's requirements
	NotAllowed   Reason = "not_allowed"   // a change to the job that is only proposed
)

// Reasons lists all reasons, the nearest to feasible first.
var Reasons = []Reason{CostsMore, OverBudget, TooSlow, InterruptedTooOften, OutlivesMachine, DoesNotFit,
	NoPrecision, InferenceOnly, NoEstimate, OverPrice, WrongPlace, WrongKind, NeedsCommitment, ManagedPlatform,
	SameAsSpot, OtherCurrency, Unpriced, OtherMachine, NotAllowed}

// Range is a value with the interval that contains it in four of five cases.
type Range struct {
	Low   float64 `json:"low"`
	Value float64 `json:"value"`
	High  float64 `json:"high"`
}

// Exactly returns a range of zero width.
func Exactly(v float64) Range { return Range{v, v, v} }

func (r Range) ok() bool {
	return r.Low > 0 && r.Value >= r.Low && r.High >= r.Value && !math.IsInf(r.High, 0)
}

// Shape is everything that an estimate depends on besides the job.
type Shape struct {
	Accelerator string // "" for none
	Each        int    // accelerators in a machine
	CPUs        int    // of a machine
	Machines    int
	// between machines, in Gbit/s, and between the accelerators of a machine, in GB/s in one direction, if that
	// differs from their type; 0: unknown
	Network, Link float64
}

// Count returns how many accelerators work together.
func (s Shape) Count() int { return s.Each * s.Machines }

// Estimate is the expected performance of a variant on a shape.
type Estimate struct {
	Rate   Range      // work per second, of all machines together
	Memory size.Bytes // peak of one accelerator; 0: unknown
	// Fits is nil if unknown.
	Fits   *bool
	Source string // where the figures come from, one sentence
	Why    Reason // why it cannot run there at all; empty if it can
}

// Variant is a way to run the job: a precision, a batch, a smaller machine.
type Variant struct {
	Name string
	// Work is the amount of work relative to the job as it stands; 0: 1.
	Work float64
	// Requirements are this variant's requirements of a machine; nil: those of the job.
	Requirements *catalog.Filter
	// Recommendation is set if the job does not allow the variant as it stands. It is then never chosen, and its
	// saving is reported.
	Recommendation string
}

// Request is a job with everything that it could run on.
type Request struct {
	Offers   []catalog.Listing
	Hazards  map[market.OfferID]policy.Hazard // observed hazards; the prior applies to others
	Variants []Variant                        // none: the job as it stands
	Estimate func(s Shape, variant int) (Estimate, bool)

	Requirements catalog.Filter
	Machines     []int   // numbers of machines that work together; none: 1
	Work         float64 // in the unit of Estimate's rates

	Deadline time.Duration // from now; 0: none
	Budget   figure.Figure
	Promise  float64 // share of such jobs that must be in time; 0: 0.9
	Currency money.Currency

	Start  time.Duration // from getting a machine to the first step
	Resume time.Duration // the same, from a checkpoint
	Save   time.Duration // time that a checkpoint takes from the work
	Gap    time.Duration // expected wait for another spot machine
	// Checkpoints is set if an interruption repeats only the work after the last checkpoint.
	Checkpoints bool

	Data    Data
	Storage figure.Figure // of checkpoints, currency units per hour; if unknown it is omitted and reported
	// Kept is the size of the stored checkpoints, and PerGBMonth the providers' prices for storing a gigabyte for a
	// month. They are used if Storage is unknown.
	Kept       size.Bytes
	PerGBMonth map[string]float64
	Now        time.Time
	Most       int // plans and rejections to return; 0: all
}

// Data is the data that must be brought to another region.
type Data struct {
	Size size.Bytes
	// Origin is where the data lie; its region is empty if there are none. A cost omits an unknown fare, and reports it.
	egress.Origin
}

// Plan is an option with its expected results.
type Plan struct {
	Offer    *catalog.Listing `json:"-"`
	ID       market.OfferID   `json:"offer"`
	Machines int              `json:"machines"`
	Variant  string           `json:"variant,omitempty"`

	Cost   Range    `json:"cost_usd"`              // in the request's currency
	Data   float64  `json:"data_usd,omitempty"`    // part of it for bringing the data there
	Stored float64  `json:"storage_usd,omitempty"` // part of it for storing the checkpoints
	Hours  Range    `json:"hours"`
	Chance *float64 `json:"odds"` // of meeting the deadline; null: no deadline

	// WorkHours is how long the work takes without interruptions.
	WorkHours     float64 `json:"work_hours"`
	Interruptions float64 `json:"interruptions"` // expected
	LostHours     float64 `json:"lost_hours"`    // expected hours of repeated work, waits and restarts
	IntervalS     float64 `json:"checkpoint_interval_s,omitempty"`
	// Fallback is the on-demand offer that takes over when the slack is used up.
	Fallback market.OfferID `json:"fallback,omitempty"`

	Stale   bool     `json:"stale"`             // its price is never spent on without a live check
	Missing []string `json:"missing,omitempty"` // unknown parts that the cost omits
	Source  string   `json:"source,omitempty"`

	why     Reason
	course  *course
	timed   bool
	chance  float64
	missing uint8
}

// Rejection is an option that is not taken.
type Rejection struct {
	Plan
	Why Reason `json:"why"`
}

// Answer is the ranked plans, and everything that was weighed.
type Answer struct {
	Feasible        bool             `json:"feasible"`
	Considered      int              `json:"considered"` // options: offers × machines × variants
	Plans           []Plan           `json:"plans"`      // feasible, the lowest expected cost first
	Rejected        []Rejection      `json:"rejected"`   // the best option of each other offer
	Counts          map[Reason]int   `json:"counts"`     // of all options
	Frontier        []Point          `json:"frontier"`
	Recommendations []Recommendation `json:"recommendations"`
	Nearest         []Nearest        `json:"nearest"` // if nothing is feasible
	Promise         float64          `json:"promise"`
	Currency        money.Currency   `json:"currency"`
}

// ranking is a request in progress.
type ranking struct {
	Request
	z        float64 // quantile of the promise
	rows     map[Shape]*row
	onDemand map[Shape]*catalog.Listing // cheapest that is not spot
	spot     map[place]money.Rate       // plain spot that ends after no fixed time
	answer   Answer
	all      []Plan // the best option of each offer that the job allows
	relaxed  map[string]Plan
	late     Plan // cheapest that misses only the deadline
}

// Rank answers a request.
func Rank(q Request) Answer {
	if len(q.Variants) == 0 {
		q.Variants = []Variant{{}}
	}
	if len(q.Machines) == 0 {
		q.Machines = []int{1}
	}
	if !(q.Promise > 0 && q.Promise < 1) {
		q.Promise = 0.9
	}
	if q.Currency == "" {
		q.Currency = money.USD
	}
	r := &ranking{Request: q, z: quantile(q.Promise), all: make([]Plan, 0, len(q.Offers)), rows: map[Shape]*row{},
		onDemand: map[Shape]*catalog.Listing{}, spot: map[place]money.Rate{}, relaxed: map[string]Plan{}}
	r.answer = Answer{Counts: map[Reason]int{}, Promise: q.Promise, Currency: q.Currency, Plans: []Plan{},
		Rejected: []Rejection{}, Recommendations: []Recommendation{}, Nearest: []Nearest{}}
	r.fallbacks()
	for i := range q.Offers {
		r.weigh(&q.Offers[i])
	}
	r.finish()
	return r.answer
}

// shape returns the inputs of the estimate of an offer.
func shape(l *catalog.Listing, machines int) Shape {
	o := &l.Offer
	s := Shape{Accelerator: o.Accelerator, Each: o.Accelerators, CPUs: o.CPUs, Machines: machines, Link: l.Link.V}
	if machines > 1 {
		s.Network = l.Network.V
	}
	return s
}

// alike returns the shape without what may differ in an offer that takes over: the host's processors if there are
// accelerators, and the interconnect.
func (s Shape) alike() Shape {
	s.Machines, s.Network, s.Link = 1, 0, 0
	if s.Each > 0 {
		s.CPUs = 0
	}
	return s
}

// fallbacks finds the cheapest on-demand offer of each shape that the job allows, and the plain spot offers.
func (r *ranking) fallbacks() {
	needs := r.Requirements
	needs.Capacity = nil
	for i := range r.Offers {
		l := &r.Offers[i]
		if !l.Plain() || l.Offer.MaxLifetime > 0 || !l.Quote.Priced {
			continue
		}
		if l.Offer.Capacity == market.Spot {
			at := placeOf(&l.Offer)
			if old, ok := r.spot[at]; !ok || l.Quote.Rate < old {
				r.spot[at] = l.Quote.Rate
			}
			continue
		}
		if l.Offer.Currency != r.Currency || !needs.Takes(*l) {
			continue
		}
		s := shape(l, 1).alike()
		if old, ok := r.onDemand[s]; !ok || l.Quote.Rate < old.Quote.Rate ||
			l.Quote.Rate == old.Quote.Rate && l.Offer.ID < old.Offer.ID {
			r.onDemand[s] = l
		}
	}
}

// weigh evaluates every machine count and variant of an offer.
func (r *ranking) weigh(l *catalog.Listing) {
	best, found := Plan{}, false
	base := r.allows(&r.Requirements, l)
	for _, n := range r.Machines {
		w := r.row(shape(l, n))
		for v := range r.Variants {
			variant := &r.Variants[v]
			p := Plan{Offer: l, ID: l.Offer.ID, Machines: n, Variant: variant.Name, why: base}
			if variant.Requirements != nil {
				p.why = r.allows(variant.Requirements, l)
			}
			r.answer.Considered++
			r.judge(&p, w, l, v)
			if p.why != "" {
				r.answer.Counts[p.why]++
			}
			if variant.Recommendation == "" && (!found || better(&p, &best)) {
				best, found = p, true
			}
		}
	}
	if found {
		r.all = append(r.all, best)
	}
}

// judge sets why one option is not feasible, and records it if a change of the job would make it feasible.
func (r *ranking) judge(p *Plan, w *row, l *catalog.Listing, v int) {
	change := r.Variants[v].Recommendation
	if p.why == "" || p.why == WrongPlace || p.why == WrongKind {
		bad := r.option(p, w, l, v)
		switch {
		case change != "" && p.why == "" && bad == "":
			r.relax(change, p)
		case change == "" && p.why != "" && bad == "":
			r.relax(string(p.why), p)
		case change == "" && p.why == "":
			p.why = bad
			r.tooLate(p)
		}
	}
	if change != "" {
		p.why = NotAllowed
	}
}

// tooLate records the cheapest plan that misses only the deadline.
func (r *ranking) tooLate(p *Plan) {
	if p.why == TooSlow && r.affords(p) && (r.late.course == nil || cheaper(p, &r.late) < 0) {
		r.late = *p
	}
}

// relax records the cheapest plan under a change that the job does not allow as it stands.
func (r *ranking) relax(what string, p *Plan) {
	if old, ok := r.relaxed[what]; !ok || cheaper(p, &old) < 0 {
		r.relaxed[what] = *p
	}
}

// allows returns why the job does not allow an offer, or "".
func (r *ranking) allows(needs *catalog.Filter, l *catalog.Listing) Reason {
	switch {
	case (l.Term.Commits() || l.Platform != "") && !r.loose(needs, l):
		return OtherMachine
	case l.Term.Commits():
		return NeedsCommitment
	case l.Platform != "":
		return ManagedPlatform
	}
	takes := needs.Takes(*l)
	switch {
	case !takes && !r.loose(needs, l):
		return OtherMachine
	case !l.Quote.Priced:
		return Unpriced
	case l.Offer.Currency != r.Currency:
		return OtherCurrency
	case takes && r.sameAsSpot(l):
		return SameAsSpot
	case takes:
		return ""
	}
	return tooStrict(needs, l)
}

// tooStrict says which need alone keeps the job off an offer.
func tooStrict(needs *catalog.Filter, l *catalog.Listing) Reason {
	f := *needs
	if f.MaxRate = 0; f.Takes(*l) {
		return OverPrice
	}
	f = *needs
	if f.Regions = nil; f.Takes(*l) {
		return WrongPlace
	}
	f = *needs
	if f.Capacity = nil; f.Takes(*l) {
		return WrongKind
	}
	return OtherMachine
}

// loose reports whether the machine itself would suit the job.
func (*ranking) loose(needs *catalog.Filter, l *catalog.Listing) bool {
	f := *needs
	f.MaxRate, f.Regions, f.Capacity, f.Providers = 0, nil, nil, nil
	return f.Takes(*l)
}

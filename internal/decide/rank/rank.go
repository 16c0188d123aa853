// Package rank ranks plans: offers × machines × variants of a job, on spot or not,
// by what they are expected to cost, when they are done, and how likely that is in
// time. It says why each other option is not taken, what would be cheaper, and,
// where nothing is feasible, which budget or deadline would be.
//
// Offers with the same accelerator and count share an estimate; prices only rank
// them. Formulas are in docs/formulas.md, section "Ranked plans".
package rank

import (
	"math"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// Reason says why an option is not taken. The set is closed: it is a metric label.
type Reason string

// Why an option is not taken.
const (
	CostsMore           Reason = "costs_more"            // it would do, and another is expected to cost less
	TooSlow             Reason = "too_slow"              // the deadline is less likely than was promised
	OverBudget          Reason = "over_budget"           // it is expected to cost more than the budget
	DoesNotFit          Reason = "does_not_fit"          // its accelerators have not the memory
	NoPrecision         Reason = "no_precision"          // its accelerators do not multiply in the job's format
	InferenceOnly       Reason = "inference_only"        // its accelerators serve models and train none
	InterruptedTooOften Reason = "interrupted_too_often" // spot: more work is lost than is done
	OutlivesMachine     Reason = "outlives_machine"      // its machines end before the work, which saves nothing
	NoEstimate          Reason = "no_estimate"           // its speed is unknown
	Unpriced            Reason = "unpriced"              // its price is unknown, which is not zero
	OtherCurrency       Reason = "other_currency"        // nothing is converted without a dated rate
	OverPrice           Reason = "over_max_price"
	WrongPlace          Reason = "wrong_place" // not in a region that the job allows
	WrongKind           Reason = "wrong_kind"  // a kind of capacity that the job does not allow
	// its price is paid for a year or three, whether it is used or not: no plan of one job buys that
	NeedsCommitment Reason = "needs_commitment"
	ManagedPlatform Reason = "managed_platform" // no engine runs jobs there; its price is for comparison
	OtherMachine    Reason = "other_machine"    // not what the job asks for
	NotAllowed      Reason = "not_allowed"      // a change of the job that is only proposed
)

// Reasons are all reasons, the nearest to being taken first.
var Reasons = []Reason{CostsMore, OverBudget, TooSlow, InterruptedTooOften, OutlivesMachine, DoesNotFit,
	NoPrecision, InferenceOnly, NoEstimate, OverPrice, WrongPlace, WrongKind, NeedsCommitment, ManagedPlatform,
	OtherCurrency, Unpriced, OtherMachine, NotAllowed}

// Range is a value with the ends of the interval that holds it in four of five cases.
type Range struct {
	Low   float64 `json:"low"`
	Value float64 `json:"value"`
	High  float64 `json:"high"`
}

// Exactly is a range without width.
func Exactly(v float64) Range { return Range{v, v, v} }

func (r Range) ok() bool {
	return r.Low > 0 && r.Value >= r.Low && r.High >= r.Value && !math.IsInf(r.High, 0)
}

// Shape is all that an estimate depends on besides the job.
type Shape struct {
	Accelerator string // "" for none
	Each        int    // accelerators in a machine
	CPUs        int    // of a machine
	Machines    int
	// between machines, in Gbit/s, and between the accelerators of one, in GB/s one way, where that
	// is not what their kind has; 0 is unknown
	Network, Link float64
}

// Count returns how many accelerators work together.
func (s Shape) Count() int { return s.Each * s.Machines }

// Estimate is what a variant is expected to do on a shape.
type Estimate struct {
	Rate   Range      // work a second, of all machines together
	Memory size.Bytes // of one accelerator at the peak; 0 is unknown
	// Fits is nil where nobody knows.
	Fits   *bool
	Source string // where the figures come from, in a sentence
	Why    Reason // why it cannot be done there at all; "" where it can
}

// Variant is a way to run the job: a precision, a batch, a smaller machine.
type Variant struct {
	Name string
	// Work is how much there is to do against the job as it stands; 0 is 1.
	Work float64
	// Requirements is what this variant asks of a machine; nil is what the job asks.
	Requirements *catalog.Filter
	// Recommendation is set where the job does not allow it as it stands: it is never
	// chosen, and what it would save is reported.
	Recommendation string
}

// Request is a job, and all that it could run on.
type Request struct {
	Offers   []catalog.Listing
	Hazards  map[market.OfferID]policy.Hazard // as seen; the prior where there is none
	Variants []Variant                        // none is the job as it stands
	Estimate func(s Shape, variant int) (Estimate, bool)

	Requirements catalog.Filter
	Machines     []int   // counts of machines that work together; none is 1
	Work         float64 // in the unit of Estimate's rates

	Deadline time.Duration // from now on; 0 is none
	Budget   catalog.Figure
	Promise  float64 // share of such jobs that must be in time; 0 is 0.9
	Currency money.Currency

	Start  time.Duration // from a machine to the first step
	Resume time.Duration // the same, from a checkpoint
	Save   time.Duration // that a checkpoint takes from the work
	Gap    time.Duration // expected wait for another spot machine
	// Checkpoints says that an interruption repeats only what came after the last one.
	Checkpoints bool

	Data    Data
	Storage catalog.Figure // of checkpoints, currency units an hour; unknown is left out, and said
	// Kept is the size of the checkpoints that are kept, and PerGBMonth what providers take
	// for keeping a gigabyte for a month: used where Storage is unknown.
	Kept       size.Bytes
	PerGBMonth map[string]float64
	Now        time.Time
	Most       int // plans and rejections to return; 0 is all
}

// Data is what must be brought to another region.
type Data struct {
	Size     size.Bytes
	Region   string         // "" where nothing is to be brought
	Provider string         // in whose store it lies; "" is unknown, and none is then told from another
	PerGB    catalog.Figure // currency units a gigabyte; unknown is left out, and said
	// PerGBRegion is the same to another region of that provider on the same continent.
	PerGBRegion catalog.Figure
}

// Plan is an option with what is expected of it.
type Plan struct {
	Offer    *catalog.Listing `json:"-"`
	ID       market.OfferID   `json:"offer"`
	Machines int              `json:"machines"`
	Variant  string           `json:"variant,omitempty"`

	Cost   Range    `json:"cost_usd"`              // in the request's currency
	Data   float64  `json:"data_usd,omitempty"`    // of it, bringing the data there
	Stored float64  `json:"storage_usd,omitempty"` // of it, keeping the checkpoints
	Hours  Range    `json:"hours"`
	Chance *float64 `json:"odds"` // of the deadline; null: there is none

	// WorkHours is how long the work takes where nothing interrupts it.
	WorkHours     float64 `json:"work_hours"`
	Interruptions float64 `json:"interruptions"` // expected
	LostHours     float64 `json:"lost_hours"`    // expected: work that is done twice, waits and restarts
	IntervalS     float64 `json:"checkpoint_interval_s,omitempty"`
	// Fallback is the on-demand offer that takes over when the slack is gone.
	Fallback market.OfferID `json:"fallback,omitempty"`

	Stale   bool     `json:"stale"`             // its price is never spent on without a live check
	Missing []string `json:"missing,omitempty"` // what the cost leaves out, since nobody knows it
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

// Answer is the ranked plans, and all that was weighed.
type Answer struct {
	Feasible        bool             `json:"feasible"`
	Considered      int              `json:"considered"` // options: offers × machines × variants
	Plans           []Plan           `json:"plans"`      // feasible, the least expected cost first
	Rejected        []Rejection      `json:"rejected"`   // of each other offer its best option
	Counts          map[Reason]int   `json:"counts"`     // of all options
	Frontier        []Point          `json:"frontier"`
	Recommendations []Recommendation `json:"recommendations"`
	Nearest         []Nearest        `json:"nearest"` // where nothing is feasible
	Promise         float64          `json:"promise"`
	Currency        money.Currency   `json:"currency"`
}

// ranking is a request being answered.
type ranking struct {
	Request
	z        float64 // quantile of the promise
	rows     map[Shape]*row
	onDemand map[Shape]*catalog.Listing // the cheapest that is not spot
	answer   Answer
	all      []Plan // the best option of each offer that the job allows
	relaxed  map[string]Plan
	late     Plan // the cheapest that misses only the deadline
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
		onDemand: map[Shape]*catalog.Listing{}, relaxed: map[string]Plan{}}
	r.answer = Answer{Counts: map[Reason]int{}, Promise: q.Promise, Currency: q.Currency, Plans: []Plan{},
		Rejected: []Rejection{}, Recommendations: []Recommendation{}, Nearest: []Nearest{}}
	r.fallbacks()
	for i := range q.Offers {
		r.weigh(&q.Offers[i])
	}
	r.finish()
	return r.answer
}

// shape is what an estimate of an offer depends on.
func shape(l *catalog.Listing, machines int) Shape {
	o := &l.Offer
	s := Shape{Accelerator: o.Accelerator, Each: o.Accelerators, CPUs: o.CPUs, Machines: machines, Link: l.Link.V}
	if machines > 1 {
		s.Network = l.Network.V
	}
	return s
}

// alike is a shape without what an offer that takes over may have otherwise: the host's processors
// beside accelerators, and how the machines are joined.
func (s Shape) alike() Shape {
	s.Machines, s.Network, s.Link = 1, 0, 0
	if s.Each > 0 {
		s.CPUs = 0
	}
	return s
}

// fallbacks finds the cheapest on-demand offer of each shape that the job allows.
func (r *ranking) fallbacks() {
	needs := r.Requirements
	needs.Capacity = nil
	for i := range r.Offers {
		l := &r.Offers[i]
		if l.Offer.Capacity == market.Spot || !l.Plain() || l.Offer.MaxLifetime > 0 || !l.Quote.Priced ||
			l.Offer.Currency != r.Currency || !needs.Takes(*l) {
			continue
		}
		s := shape(l, 1).alike()
		if old, ok := r.onDemand[s]; !ok || l.Quote.Rate < old.Quote.Rate ||
			l.Quote.Rate == old.Quote.Rate && l.Offer.ID < old.Offer.ID {
			r.onDemand[s] = l
		}
	}
}

// weigh looks at every machine count and variant of an offer.
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

// judge says of one option why it would not do, and keeps it where it would under a change.
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

// tooLate keeps the cheapest plan that misses only the deadline.
func (r *ranking) tooLate(p *Plan) {
	if p.why == TooSlow && r.affords(p) && (r.late.course == nil || cheaper(p, &r.late) < 0) {
		r.late = *p
	}
}

// relax keeps the cheapest plan of what the job does not allow as it stands.
func (r *ranking) relax(what string, p *Plan) {
	if old, ok := r.relaxed[what]; !ok || cheaper(p, &old) < 0 {
		r.relaxed[what] = *p
	}
}

// allows says why the job does not allow an offer, or "".
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

// loose reports whether the machine itself would do.
func (*ranking) loose(needs *catalog.Filter, l *catalog.Listing) bool {
	f := *needs
	f.MaxRate, f.Regions, f.Capacity, f.Providers = 0, nil, nil, nil
	return f.Takes(*l)
}

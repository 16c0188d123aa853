// Package plan holds the decision where money is spent.
package plan

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/policy"
)

// Version names the rules of this package in the log, so that a recorded
// decision says which rules took it.
const Version = "uniform-progress-2/1"

// Reason says why an option was taken or not. It is a metric label and a column
// of `scrimp explain`, so the set is small and closed.
type Reason string

// Why an option was taken.
const (
	Cheapest   Reason = "cheapest"    // least per unit of work of all that the mode allows
	Stays      Reason = "stays"       // it is held, and moving would not pay
	SlackGone  Reason = "slack_gone"  // only capacity that cannot be taken away is in time
	BehindPace Reason = "behind_pace" // no spot, and waiting would use up the slack
	WaitsSpot  Reason = "waits_spot"  // spot is expected in time
	NoOffer    Reason = "no_offer"    // nothing on the market fits the job
	NoCapacity Reason = "no_capacity" // what fits cannot be had now
	BudgetGone Reason = "budget_gone" // no option starts within the budget
)

// Why an option was not taken.
const (
	CostsMore   Reason = "costs_more"  // it would do, and is beaten on price
	Unavailable Reason = "unavailable" // cannot be had now
	Unpriced    Reason = "unpriced"    // its price is unknown, which is not zero
	TooSmall    Reason = "too_small"   // fewer processors or less memory than the job asks for
	WrongPlace  Reason = "wrong_place" // not in a zone or region that the job allows
	WrongKind   Reason = "wrong_kind"  // a kind of capacity that the job does not allow
	OverPrice   Reason = "over_max_price"
	OverBudget  Reason = "over_budget" // its first minutes would pass the budget
	TooRisky    Reason = "too_risky"   // could be taken away, and there is no slack for that
	NotYet      Reason = "not_yet"     // dearer than spot, and there is time to wait
	CoolingOff  Reason = "cooling_off" // refused a launch a moment ago
	Moving      Reason = "moving"      // cheaper, but not by more than the move costs
)

// Need is what the job asks of a machine. Zero fields ask for nothing.
type Need struct {
	CPUs     int               `json:"cpus,omitempty"`
	Memory   int64             `json:"memory_bytes,omitempty"`
	Zones    []string          `json:"zones,omitempty"` // zones or regions
	Capacity []market.Capacity `json:"capacity,omitempty"`
	MaxRate  money.Rate        `json:"max_price,omitempty"` // 0: no limit
	Critical bool              `json:"critical,omitempty"`  // never on what can be taken away
}

// Option is an offer with its quote, as the job sees it.
type Option struct {
	Offer   market.Offer
	Quote   market.Quote
	Cooling bool // it refused a launch a moment ago
}

// Job is what a decision looks at.
type Job struct {
	Need     Need
	Progress policy.Progress
	Held     market.OfferID // "" when no machine is held
	Left     money.Amount   // of the budget
	Limited  bool           // whether there is a budget
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
	Why      Reason         `json:"why"`
	Mode     policy.Mode    `json:"mode"`
	Slack    time.Duration  `json:"slack_ns,omitempty"`
	HasSlack bool           `json:"has_slack,omitempty"`
	Rejected []Rejection    `json:"rejected,omitempty"`
	// Again is when time alone could change the decision; zero: never.
	Again time.Time `json:"again,omitzero"`
}

// Decide takes the option that does the work for the least money among those
// that the deadline allows. Ties go to the held machine, then to the name, so that equal
// input gives equal output whatever the order it came in.
func Decide(job Job, options []Option) Decision {
	d := Decision{Mode: policy.Deadline(job.Progress)}
	if job.Need.Critical {
		d.Mode = policy.Certain
	}
	d.Slack, d.HasSlack = job.Progress.Slack(job.Held != "")

	ranked := slices.SortedFunc(slices.Values(options), func(a, b Option) int {
		return cmp.Or(cmp.Compare(perWork(a), perWork(b)), -compareBool(a.Offer.ID == job.Held, b.Offer.ID == job.Held), cmp.Compare(a.Offer.ID, b.Offer.ID))
	})
	spotExists, odExists := false, false
	var spot, firm, held *Option
	reject := func(o Option, why Reason) {
		d.Rejected = append(d.Rejected, Rejection{Offer: o.Offer.ID, Rate: o.Quote.Rate, Priced: o.Quote.Priced, Why: why})
	}
	usable := make([]Option, 0, len(ranked)) // never grows: pointers into it stay good
	for _, o := range ranked {
		if why, ok := unfit(job.Need, o); !ok {
			reject(o, why)
			continue
		}
		if o.Offer.Capacity == market.Spot {
			spotExists = true
		} else {
			odExists = true
		}
		isHeld := o.Offer.ID == job.Held
		switch {
		case !isHeld && o.Cooling:
			reject(o, CoolingOff)
			continue
		case !isHeld && !o.Quote.Available:
			reject(o, Unavailable)
			continue
		case job.Limited && !job.DeadlineFirst && !isHeld && o.Quote.Rate.Until(max(job.Progress.Restart, time.Minute)).Cmp(job.Left) > 0:
			reject(o, OverBudget)
			continue
		}
		usable = append(usable, o)
		at := &usable[len(usable)-1]
		if isHeld {
			held = at
		}
		if o.Offer.Capacity == market.Spot && spot == nil {
			spot = at
		}
		if o.Offer.Capacity != market.Spot && firm == nil {
			firm = at
		}
	}
	take := choose(&d, job, spot, firm, held, spotExists, odExists)
	for _, o := range usable {
		if take != nil && o.Offer.ID == take.Offer.ID {
			continue
		}
		switch {
		case o.Offer.Capacity == market.Spot && d.Mode == policy.Certain:
			reject(o, TooRisky)
		case o.Offer.Capacity != market.Spot && (take == nil || take.Offer.Capacity == market.Spot):
			reject(o, NotYet)
		case d.Why == Stays && take != nil && perWork(o) < perWork(*take):
			reject(o, Moving)
		default:
			reject(o, CostsMore)
		}
	}
	if take != nil {
		d.Take, d.Rate = take.Offer.ID, take.Quote.Rate
	}
	d.Again = again(d, job, take)
	return d
}

// choose picks among the best spot, the best firm and the held option, and sets d.Why.
func choose(d *Decision, job Job, spot, firm, held *Option, spotExists, odExists bool) *Option {
	why := func(r Reason, o *Option) *Option { d.Why = r; return o }
	if !spotExists && !odExists {
		return why(NoOffer, nil)
	}
	if d.Mode == policy.Certain {
		switch {
		case held != nil && held.Offer.Capacity != market.Spot:
			return why(Stays, held)
		case firm != nil:
			return why(SlackGone, firm)
		case held != nil:
			return why(Stays, held)
		case spot != nil && !job.Need.Critical:
			return why(Cheapest, spot)
		}
		return why(missing(*d), nil)
	}
	if held != nil && held.Offer.Capacity == market.Spot {
		return why(Stays, held)
	}
	if spot != nil {
		if held == nil || pays(job, *held, *spot) {
			return why(Cheapest, spot)
		}
		return why(Stays, held)
	}
	if held != nil {
		return why(Stays, held)
	}
	if firm != nil && d.Mode == policy.Steady {
		return why(BehindPace, firm)
	}
	if firm != nil && !spotExists {
		return why(Cheapest, firm)
	}
	if spotExists {
		return why(WaitsSpot, nil)
	}
	return why(missing(*d), nil)
}

// missing says why nothing that fits was usable.
func missing(d Decision) Reason {
	for _, r := range d.Rejected {
		if r.Why == OverBudget {
			return BudgetGone
		}
	}
	return NoCapacity
}

// pays reports whether leaving held for o saves more than the move costs: the
// restart is paid at o's price and does no work.
func pays(job Job, held, o Option) bool {
	if !job.Progress.Known {
		return true
	}
	slack, ok := job.Progress.Slack(false)
	if ok && slack <= 3*job.Progress.Restart+job.Progress.Detect {
		return false // the job would come back at once
	}
	stay := perWork(held) * job.Progress.Left.Hours()
	move := float64(perWork(o)*job.Progress.Left.Hours()) + float64(o.Quote.Rate.Float()*job.Progress.Restart.Hours())
	return move < stay
}

// again is when the mode would change if no more work got done: to Certain, or
// before that to Steady where the job waits.
func again(d Decision, job Job, take *Option) time.Time {
	var at time.Time
	if d.Mode == policy.Certain {
		return at
	}
	if certain, ok := policy.CertainAt(job.Progress); ok {
		at = certain
	}
	if steady, ok := policy.SteadyAt(job.Progress); ok && d.Mode == policy.Patient && take == nil && (at.IsZero() || steady.Before(at)) {
		at = steady
	}
	return at
}

// unfit returns why o can never do for the job, and false, or true where it can.
func unfit(n Need, o Option) (Reason, bool) {
	switch {
	case o.Offer.CPUs < n.CPUs, int64(o.Offer.Memory) < n.Memory:
		return TooSmall, false
	case len(n.Zones) > 0 && !slices.Contains(n.Zones, o.Offer.Zone) && !slices.Contains(n.Zones, o.Offer.Region):
		return WrongPlace, false
	case len(n.Capacity) > 0 && !slices.Contains(n.Capacity, o.Offer.Capacity),
		n.Critical && o.Offer.Capacity == market.Spot:
		return WrongKind, false
	case !o.Quote.Priced:
		return Unpriced, false
	case n.MaxRate > 0 && o.Quote.Rate > n.MaxRate:
		return OverPrice, false
	}
	return "", true
}

// perWork is the price of an hour of work on a machine of speed 1, for ranking only.
func perWork(o Option) float64 {
	speed := o.Offer.Speed
	if speed <= 0 {
		speed = 1
	}
	return o.Quote.Rate.Float() / speed
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

package plan

import (
	"math"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// BudgetCheck is what a budget that comes first made of a decision: what is left of it,
// and what the rest of the work costs on the offer that does it for the least.
type BudgetCheck struct {
	Left  money.Amount   `json:"left"`
	Needs money.Amount   `json:"needs"`
	On    market.OfferID `json:"on"`
}

// verdict is what a budget that comes first leaves of the options.
type verdict int

const (
	free  verdict = iota // it says no more than that a machine's first minutes are in it
	binds                // some option does all that is left within it, and only those count
	hopes                // none does at its present price, one did at a price it had
	near                 // none does, but the cheapest nearly: what is left is an estimate
	short                // not even the cheapest does
)

// nearly is by how much less than estimated the work may cost before a job that
// could not pay for it is ended: a wrong end costs more than a late one.
const nearly = 0.9

// budgetLimits weighs the budget of a job whose work is known: which options would do
// what is left of it within the money that is left, machine and grace included. Where some
// would, the others are no way to finish, and the deadline's guard gives way to that:
// the job is rather late than unfinished. over reports whether an option is none.
type budgetLimits struct {
	verdict  verdict
	doubt    bool    // there is an option that does the work within the promise
	low      *Option // that did it at a price it had, for hopes
	lowNeeds money.Amount
	held     bool // the held machine does not do it any more, and another would
	kept     bool // some option was left alone that could be had

	left      float64 // of the budget, in dollars
	leftKnown bool

	speed, hours float64 // the newest of paidHours; 0 hours: none
}

// checkBudget returns the verdict of the budget over the options that do for the job.
func checkBudget(job *Job, r *ranking) budgetLimits {
	var b budgetLimits
	first, held := r.payable()
	if first == nil {
		return b
	}
	r.cheapest = perWork(first)
	if !job.Limited || job.DeadlineFirst || !job.Progress.Known {
		return b
	}
	switch {
	case r.payFor(job, true):
		b.verdict, b.doubt = binds, true
	case r.payFor(job, false):
		b.verdict = binds
	default:
		b.beyond(job, r)
	}
	if b.verdict == binds || b.verdict == hopes {
		b.held = held != nil && job.cost(held, held.Quote.Rate, false).Cmp(job.Left) > 0
	}
	return b
}

// payable returns the first option that counts for the budget, and the held one where it does.
func (r *ranking) payable() (first, held *Option) {
	for i := range r.options {
		o := &r.options[i]
		if o.payable && first == nil {
			first = o
		}
		if o.payable && o.held {
			return first, o
		}
	}
	return first, nil
}

// payFor reports whether some option does what is left within the budget.
func (r *ranking) payFor(job *Job, doubt bool) bool {
	for i := range r.options {
		if o := &r.options[i]; o.payable && job.cost(o, o.Quote.Rate, doubt).Cmp(job.Left) <= 0 {
			return true
		}
	}
	return false
}

// beyond is the verdict where nothing does the work within the budget now.
func (b *budgetLimits) beyond(job *Job, r *ranking) {
	least, some := money.Amount{}, false
	for i := range r.options {
		o := &r.options[i]
		if !o.payable {
			continue
		}
		rate := o.Quote.Rate
		if o.Low.Known && o.Low.Rate < rate {
			rate = o.Low.Rate
			fresh := *o
			fresh.held = false
			if needs := job.cost(&fresh, rate, false); needs.Cmp(job.Left) <= 0 {
				b.verdict, b.low, b.lowNeeds = hopes, o, needs
				return
			}
		}
		if cost := rate.Until(quantity.Scale(job.bare(o), nearly)); !some || cost.Cmp(least) < 0 {
			least, some = cost, true
		}
	}
	switch {
	case job.Progress.Deadline.IsZero() || job.Sooner:
		b.verdict = free // as much as the money buys is what is asked for, or it may be done sooner
	case r.more() || job.Rough || least.Cmp(job.Left) <= 0:
		b.verdict = near
	default:
		b.verdict = short
	}
}

// bare is the shortest that what is left may take on o.
func (job *Job) bare(o *Option) time.Duration {
	left := onSpeed(job.Progress.Left, o.speed)
	if o.held {
		left -= quantity.Over(job.Unsaved, perHour(o))
	}
	return max(0, left-onSpeed(job.Progress.Margin, o.speed))
}

// more reports whether others may do later, at a price that nobody knows now.
func (r *ranking) more() bool {
	later := func(why Reason) bool { return why == Unpriced || why == LaterRung || why == OverPrice }
	for _, n := range r.unlisted {
		if later(n.Why) {
			return true
		}
	}
	for i := range r.options {
		if later(r.options[i].why) {
			return true
		}
	}
	return false
}

// over reports whether an option must be left alone for the budget's sake.
func (b *budgetLimits) over(job *Job, o *Option, cheapest float64) bool {
	switch b.verdict {
	case binds, hopes:
		if o.held {
			return b.held
		}
		return b.dearer(job, o)
	case near:
		return !o.held && perWork(o) > cheapest
	case short:
		return true
	case free:
	}
	return false
}

// dearer reports whether the rest of the work costs more on o than is left. Exact amounts
// are compared only where they are near to each other.
func (b *budgetLimits) dearer(job *Job, o *Option) bool {
	if !b.leftKnown {
		b.left, b.leftKnown = job.Left.Float(), true
	}
	usd := o.Quote.Rate.Float() * b.paidHours(job, o)
	if !o.held {
		usd += job.DueElsewhere.Float()
	}
	if off := usd - b.left; math.Abs(off) > dollarsApart(b.left) {
		return off > 0
	}
	return job.cost(o, o.Quote.Rate, b.doubt).Cmp(job.Left) > 0
}

// paidHours is job.span in hours, which is the same for all offers of one speed that are not held.
func (b *budgetLimits) paidHours(job *Job, o *Option) float64 {
	if o.held || o.Offer.Billing.Minimum > 0 {
		return job.span(o, b.doubt).Hours()
	}
	if b.hours == 0 || o.speed != b.speed {
		b.speed, b.hours = o.speed, job.span(o, b.doubt).Hours()
	}
	return b.hours
}

// dollarsApart is from how many dollars on amounts near so many surely differ.
func dollarsApart(usd float64) float64 { return 1e-6 + math.Abs(usd)*1e-9 }

// cost is what all that is left of the work costs on a machine of the offer at that
// rate, without an interruption: the restart where it is not held, what is due for the machine that is held then, and
// the grace of a last save, which is kept back from every budget.
func (job *Job) cost(o *Option, rate money.Rate, doubt bool) money.Amount {
	all := rate.Until(job.span(o, doubt))
	if !o.held {
		all = all.Add(job.DueElsewhere)
	}
	return all
}

// span is the time that is paid then.
func (job *Job) span(o *Option, doubt bool) time.Duration {
	span := onSpeed(job.Progress.Left, o.speed)
	if doubt {
		span = quantity.Add(span, onSpeed(job.Progress.Margin, o.speed))
	}
	if o.held {
		span = quantity.Add(max(0, span-quantity.Over(job.Unsaved, perHour(o))), job.Warming)
	} else {
		span = max(quantity.Add(span, job.Progress.Restart), o.Offer.Billing.Minimum)
	}
	return quantity.Add(span, job.Grace)
}

// shown is what the decision says of the budget: nil where it kept nothing from being taken.
func (b *budgetLimits) shown(job *Job, r *ranking) *BudgetCheck {
	if !b.kept && b.verdict != short {
		return nil
	}
	says := &BudgetCheck{Left: job.Left}
	if b.low != nil {
		says.Needs, says.On = b.lowNeeds, b.low.Offer.ID
		return says
	}
	least := math.Inf(1)
	for i := range r.options {
		o := &r.options[i]
		if !o.payable {
			continue
		}
		usd := o.hours(job.span(o, false))
		if usd > least+dollarsApart(least) {
			continue
		}
		least = min(least, usd)
		if needs := job.cost(o, o.Quote.Rate, false); says.On == "" || needs.Cmp(says.Needs) < 0 {
			says.Needs, says.On = needs, o.Offer.ID
		}
	}
	return says
}

// broke says why nothing is within the budget.
func (b *budgetLimits) broke() Reason {
	switch b.verdict {
	case short:
		return OutOfMoney
	case binds, hopes, near:
		return BudgetWait
	case free:
	}
	return BudgetGone
}

package plan

import (
	"math"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// BudgetCheck is the effect of a binding budget on a decision: what is left of the budget, and what the remaining
// work costs on the cheapest offer for it.
type BudgetCheck struct {
	Left  money.Amount   `json:"left"`
	Needs money.Amount   `json:"needs"`
	On    market.OfferID `json:"on"`
}

// verdict states how far the budget restricts the options when it takes precedence.
type verdict int

const (
	free  verdict = iota // the budget only has to cover a machine's first minutes
	binds                // some option finishes the work within the budget, and only such options count
	hopes                // none does at its current price, but one did at an earlier price
	near                 // none does, but the cheapest nearly does: the remaining work is only an estimate
	short                // not even the cheapest does
)

// nearly is the fraction of its estimate that the work may turn out to cost. A job is ended for lack of money only
// if it could not pay even that: ending a job wrongly costs more than ending it late.
const nearly = 0.9

// budgetLimits checks the budget of a job whose work is known: which options finish the remaining work with the
// remaining money, including the machine and the grace. If some do, the others do not count as a way to finish. The
// deadline guard yields to that, because a late job is better than an unfinished one. over reports whether the budget
// rules an option out.
type budgetLimits struct {
	verdict  verdict
	doubt    bool    // an option finishes even if the work takes the full margin
	low      *Option // for hopes: the option that finishes at its earlier price
	lowNeeds money.Amount
	held     bool // the held machine exceeds the budget, and another does not
	kept     bool // the budget ruled out an available option

	left      float64 // of the budget, in dollars
	leftKnown bool

	speed, hours float64 // last result of paidHours; 0 hours: none
}

// checkBudget returns the verdict of the budget on the options that suit the job.
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

// payable returns the first option that counts for the budget, and the held one if it counts.
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

// payFor reports whether some option finishes the remaining work within the budget.
func (r *ranking) payFor(job *Job, doubt bool) bool {
	for i := range r.options {
		if o := &r.options[i]; o.payable && job.cost(o, o.Quote.Rate, doubt).Cmp(job.Left) <= 0 {
			return true
		}
	}
	return false
}

// beyond sets the verdict if no option finishes the work within the budget now.
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
		b.verdict = free // the job wants as much as the money buys, or may finish sooner
	case r.more() || job.Rough || least.Cmp(job.Left) <= 0:
		b.verdict = near
	default:
		b.verdict = short
	}
}

// bare returns the shortest time that the remaining work may take on o.
func (job *Job) bare(o *Option) time.Duration {
	left := onSpeed(job.Progress.Left, o.speed)
	if o.held {
		left -= quantity.Over(job.Unsaved, perHour(o))
	}
	return max(0, left-onSpeed(job.Progress.Margin, o.speed))
}

// more reports whether other options may become usable later at a price that is unknown now.
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

// over reports whether the budget rules an option out.
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

// dearer reports whether the remaining work costs more on o than the budget has left. It compares exact amounts
// only if they are close.
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

// paidHours returns job.span in hours. It is the same for all options of one speed that are not held.
func (b *budgetLimits) paidHours(job *Job, o *Option) float64 {
	if o.held || o.Offer.Billing.Minimum > 0 {
		return job.span(o, b.doubt).Hours()
	}
	if b.hours == 0 || o.speed != b.speed {
		b.speed, b.hours = o.speed, job.span(o, b.doubt).Hours()
	}
	return b.hours
}

// dollarsApart is the difference beyond which two amounts of about usd certainly differ.
func dollarsApart(usd float64) float64 { return 1e-6 + math.Abs(usd)*1e-9 }

// cost is the cost of all remaining work on a machine of the offer at that rate, without an interruption. It
// includes the restart unless the machine is held, what is still due for the held machine otherwise, the inputs that
// its agent brings, and the grace of a last save, which every budget keeps back.
func (job *Job) cost(o *Option, rate money.Rate, doubt bool) money.Amount {
	all := rate.Until(job.span(o, doubt))
	if !o.held {
		all = all.Add(job.DueElsewhere)
	}
	if !o.held || job.Unread {
		all = all.Add(job.Need.brings(&o.Offer))
	}
	return all
}

// span is the time that cost pays for.
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

// shown returns the budget part of a decision's record, or nil if the budget ruled nothing out.
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

// broke returns the reason why nothing is within the budget.
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

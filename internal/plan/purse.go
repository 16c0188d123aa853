package plan

import (
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
)

// Purse is what a budget that comes first made of a decision: what is left of it,
// and what the rest of the work costs on the offer that does it for the least.
type Purse struct {
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

// purse weighs the budget of a job whose work is known: which options would do
// what is left of it within the money that is left, machine and grace included. Where some
// would, the others are no way to finish, and the deadline's guard gives way to that:
// the job is rather late than unfinished. over reports whether an option is none.
type purse struct {
	doubt   bool // there is an option that does the work within the promise
	verdict verdict
	Purse
	held bool // the held machine does not do it any more, and another would
	kept bool // some option was left alone that could be had
}

// shown is what the decision says of it.
func (p *purse) shown() *Purse {
	if !p.kept && p.verdict != short {
		return nil
	}
	says := p.Purse
	return &says
}

// broke says why nothing is within the budget.
func (s *sorted) broke() Reason {
	switch s.purse.verdict {
	case short:
		return OutOfMoney
	case binds, hopes, near:
		return BudgetWait
	case free:
	}
	return BudgetGone
}

// ranks tells the purse of an option that does for the job, cheapest work first.
type ranks struct {
	o    *Option
	held bool
}

// weigh returns the verdict of the budget over the options that do for the job.
// more says that others may do later, at a price that nobody knows now.
func weigh(job *Job, usable []ranks, more bool) purse {
	var p purse
	if !job.Limited || job.DeadlineFirst || !job.Progress.Known || len(usable) == 0 {
		return p
	}
	p.Left = job.Left
	fits := func(doubt bool) bool {
		for _, r := range usable {
			if job.cost(r, r.o.Quote.Rate, doubt).Cmp(job.Left) <= 0 {
				return true
			}
		}
		return false
	}
	for i, r := range usable {
		if needs := job.cost(r, r.o.Quote.Rate, false); i == 0 || needs.Cmp(p.Needs) < 0 {
			p.Needs, p.On = needs, r.o.Offer.ID
		}
	}
	switch {
	case fits(true):
		p.verdict, p.doubt = binds, true
	case fits(false):
		p.verdict = binds
	default:
		p.verdict = p.beyond(job, usable, more)
	}
	if p.verdict == binds || p.verdict == hopes {
		for _, r := range usable {
			p.held = p.held || r.held && job.cost(r, r.o.Quote.Rate, false).Cmp(job.Left) > 0
		}
	}
	return p
}

// beyond is the verdict where nothing does the work within the budget now.
func (p *purse) beyond(job *Job, usable []ranks, more bool) verdict {
	least := money.Amount{}
	for i, r := range usable {
		rate := r.o.Quote.Rate
		if r.o.Low.Known && r.o.Low.Rate < rate {
			rate = r.o.Low.Rate
		}
		if anew := job.cost(ranks{o: r.o}, rate, false); rate < r.o.Quote.Rate && anew.Cmp(job.Left) <= 0 {
			p.Needs, p.On = anew, r.o.Offer.ID
			return hopes
		}
		bare := scaled(job.Progress, r.o.speed)
		if r.held {
			bare.Left -= time.Duration(float64(job.Unsaved) / perHour(r.o))
		}
		span := time.Duration(nearly * float64(max(0, bare.Left-bare.Doubt)))
		if cost := rate.Until(span); i == 0 || cost.Cmp(least) < 0 {
			least = cost
		}
	}
	switch {
	case job.Progress.Deadline.IsZero() || job.Sooner:
		return free // as much as the money buys is what is asked for, or it may be done sooner
	case more || job.Rough || least.Cmp(job.Left) <= 0:
		return near
	}
	return short
}

// over reports whether an option must be left alone for the budget's sake.
func (p *purse) over(job *Job, r ranks, cheapest float64) bool {
	switch p.verdict {
	case binds, hopes:
		if r.held {
			return p.held
		}
		return job.cost(r, r.o.Quote.Rate, p.doubt).Cmp(job.Left) > 0
	case near:
		return !r.held && perWork(r.o) > cheapest
	case short:
		return true
	case free:
	}
	return false
}

// cost is what all that is left of the work costs on a machine of the offer at that
// rate, without an interruption: the restart where it is not held, and the grace of a
// last save, which is kept back from every budget.
func (job *Job) cost(r ranks, rate money.Rate, doubt bool) money.Amount {
	p := scaled(job.Progress, r.o.speed)
	span := p.Left
	if doubt {
		span += p.Doubt
	}
	if r.held {
		span = max(0, span-time.Duration(float64(job.Unsaved)/perHour(r.o))) + job.Warming
	} else {
		span = max(span+p.Restart, r.o.Offer.Billing.Minimum)
	}
	return rate.Until(span + job.Grace)
}

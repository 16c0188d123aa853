package plan

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/policy"
)

// tally counts reasons.
type tally []ReasonCount

func (t *tally) add(why Reason, n int) {
	for i := range *t {
		if (*t)[i].Why == why {
			(*t)[i].Count += n
			return
		}
	}
	*t = append(*t, ReasonCount{why, n})
}

func (t tally) total() (n int) {
	for _, c := range t {
		n += c.Count
	}
	return n
}

// rejected collects what a decision rejects. It also keeps the lists of the newest decision, which never change, so
// a million waiting jobs can share them.
type rejected struct {
	counts tally
	near   []rejectedOption // first options, or all if there are few
	retry  time.Time        // when the first offer that refused a launch may be tried again
	inUse  bool             // a reserved offer would do, but is in use

	list    []Rejection // of the newest decision
	tallied []ReasonCount
	scratch []Rejection
}

type rejectedOption struct {
	Option
	beaten bool // it could have been used
}

// explain adds to the decision why each offer was not taken. c is nil if nothing was chosen yet; available offers
// are then not rejected.
func (x *rejected) explain(d *Decision, job *Job, r *ranking, c *choice) {
	x.counts, x.near, x.retry, x.inUse = x.counts[:0], x.near[:0], time.Time{}, false
	for i := range r.options {
		o := &r.options[i]
		switch {
		case o.why != "":
			x.add(o, o.why, false)
		case c != nil && o != c.take:
			x.add(o, c.against(o, c.take == r.held && d.Mode != policy.Certain), true)
		}
	}
	for _, n := range r.unlisted {
		x.counts.add(n.Why, n.Count)
	}
	if d.Take == "" && d.Probe == "" {
		d.Retry = x.retry
		d.Unschedulable = !x.inUse &&
			!slices.ContainsFunc(x.counts, func(n ReasonCount) bool { return !classWide(n.Why) })
	}
	x.show(d, job, r)
}

func (x *rejected) add(o *Option, why Reason, beaten bool) {
	x.counts.add(why, 1)
	if len(x.near) < mostShown {
		k := rejectedOption{*o, beaten}
		k.why = why
		x.near = append(x.near, k)
	}
	switch why {
	case CoolingOff:
		if o.Backoff.IsZero() { // the job itself has requested it and waits for the answer
			return
		}
		if x.retry.IsZero() || o.Backoff.Before(x.retry) {
			x.retry = o.Backoff
		}
	case Unavailable:
		x.inUse = x.inUse || o.prepaid
	default:
	}
}

// show lists some of the rejected offers, or all if there are few. Those that could not have been taken come first.
func (x *rejected) show(d *Decision, job *Job, r *ranking) {
	total := x.counts.total()
	for _, o := range r.others[:min(len(r.others), mostShown-len(x.near))] {
		x.near = append(x.near, rejectedOption{Option: o})
	}
	if total <= mostShown {
		for i := range x.near {
			if o := &x.near[i]; !o.held &&
				(o.why == LaterRung || o.why == WrongKind) { // no way of doing the work is allowed
				o.perHourOfWork = o.perWork(1)
			}
		}
		slices.SortStableFunc(x.near, func(a, b rejectedOption) int {
			return cmp.Or(compareBool(a.beaten, b.beaten), job.compare(&a.Option, &b.Option))
		})
	}
	x.scratch = x.scratch[:0]
	for i := range x.near {
		o := &x.near[i]
		x.scratch = append(
			x.scratch,
			Rejection{Offer: o.Offer.ID, Rate: o.Quote.Rate, Priced: o.Quote.Priced, Why: o.why, Reads: o.reads},
		)
	}
	if !slices.Equal(x.scratch, x.list) {
		x.list = slices.Clone(x.scratch)
	}
	d.Rejected = x.list[:len(x.list):len(x.list)]
	if len(d.Rejected) == 0 {
		d.Rejected = nil
	}
	if total > mostShown {
		slices.SortFunc(x.counts, func(a, b ReasonCount) int { return cmp.Compare(a.Why, b.Why) })
		if !slices.Equal(x.counts, x.tallied) {
			x.tallied = slices.Clone(x.counts)
		}
		d.Counts = x.tallied
	}
}

// against returns why o was not taken although it could have been.
func (c *choice) against(o *Option, stays bool) Reason {
	switch take := c.take; {
	case c.weighing && (take == nil || perWork(o) < perWork(take)):
		return Weighing
	case take == nil && o.spot && !c.foresaw:
		return TooRisky
	case take == nil:
		return NotYet
	case perWork(o) >= perWork(take):
		return CostsMore
	case o.spot && !take.spot && c.kind == policy.NonPreemptible && !stays:
		return TooRisky
	}
	return Moving
}

// classWide reports whether a rejection for that reason holds for every job of the class.
func classWide(why Reason) bool {
	switch why {
	case Unavailable, Unpriced, WrongGPU, TooSmall, DoesNotFit, TooLarge, TooFew, NoImages, WrongPlace, WrongKind,
		OverPrice, UnknownFare, CoolingOff:
		return true
	default:
	}
	return false
}

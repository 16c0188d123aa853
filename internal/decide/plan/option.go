package plan

import (
	"cmp"
	"slices"

	"scrimp/internal/decide/policy"
)

// Option is a listing as one job sees it.
type Option struct {
	*Listing
	perHourOfWork float64
	speed         float64 // of the work on it
	way           int     // of doing the work on it: 0 the job's own, then the variants
	why           Reason  // it is not taken; "": it can be
	spot, prepaid bool
	held          bool
	payable       bool // it does for the job and its policy, and so counts for the budget
	promised      bool // it is reserved, and goes to another job
}

// A decision weighs as many options as can be had, the cheapest per unit of work of each
// kind: mostSpot of spot and mostOnDemand of what cannot be interrupted. Of what cannot be
// had it weighs that which is among the first mostOptions.
const (
	mostOptions  = 5000
	mostSpot     = 4000
	mostOnDemand = mostOptions - mostSpot
)

// lineup is the options of a decision being put in order.
type lineup struct {
	options  []Option // the cheapest per unit of work first, then held, then where its checkpoint is, then by ID
	copies   []*Listing
	copied   int
	holds    *Listing // that of the held machine
	unlisted tally    // what is not among the options: it does not do, or is not weighed
	others   []Option // the first of what does not do

	spot, onDemand int // of options, those that can be had
	moved          bool
}

// fill puts what the class has into the order of the job. It sorts nothing: only where the
// job is decides between options at the same price.
func (w *lineup) fill(job *Job, c *Class) {
	w.begin(min(len(c.fit), 2*mostOptions) + 1)
	held, holds := w.held(job, c)
	for i := 0; i < len(c.fit); {
		if w.complete() {
			w.rest(c, i)
			break
		}
		price := c.fit[i].perWork
		if holds && held.perHourOfWork <= price {
			w.options, holds = append(w.options, held), false
		}
		away, end := false, i
		for ; end < len(c.fit) && c.fit[end].perWork == price; end++ {
			if x := &c.fit[end]; job.away(x) {
				away = true
			} else {
				w.add(job, x)
			}
		}
		for ; away && i < end; i++ {
			if x := &c.fit[i]; job.away(x) {
				w.add(job, x)
			}
		}
		i = end
	}
	if holds {
		w.options = append(w.options, held)
	}
	if w.moved {
		w.sort(job)
	}
	w.unlist(c)
}

// complete reports whether nothing more is weighed.
func (w *lineup) complete() bool {
	return w.spot >= mostSpot && w.onDemand >= mostOnDemand && len(w.options) >= mostOptions
}

// rest counts what comes from i on, which is not weighed.
func (w *lineup) rest(c *Class, i int) {
	n := len(c.fit) - i
	if h := w.holds; h != nil && c.known[h.number].why == "" {
		if at, _ := c.find(&candidate{perWork: c.known[h.number].perWork, Listing: h}); at >= i {
			n--
		}
	}
	if n > 0 {
		w.unlisted.add(NotWeighed, n)
	}
}

// unlist counts what does not do for the class, but for the held machine, which is an option.
func (w *lineup) unlist(c *Class) {
	for _, n := range c.counts {
		if n.Count > 0 {
			w.unlisted.add(n.Why, n.Count)
		}
	}
	for _, l := range c.firstOthers() {
		if l != w.holds {
			w.others = append(w.others, other(l, c.known[l.number].why))
		}
	}
	if w.holds != nil && c.known[w.holds.number].why != "" {
		w.unlisted.add(c.known[w.holds.number].why, -1)
		w.unlisted = slices.DeleteFunc(w.unlisted, func(n ReasonCount) bool { return n.Count == 0 })
	}
}

// other is a listing that does not do.
func other(l *Listing, why Reason) Option {
	return Option{Listing: l, perHourOfWork: l.perWork(1), why: why, spot: l.spot()}
}

// begin makes room for n options: they are not moved until the next decision.
func (w *lineup) begin(n int) {
	w.options, w.unlisted, w.others = slices.Grow(w.options[:0], n), w.unlisted[:0], w.others[:0]
	w.copied, w.spot, w.onDemand, w.moved, w.holds = 0, 0, 0, false, nil
}

// away reports whether x cannot be interrupted and is not where the checkpoint is.
func (job *Job) away(x *candidate) bool {
	return job.CheckpointRegion != "" && !x.spot && x.Offer.Region != job.CheckpointRegion
}

// add adds what the job does not hold.
func (w *lineup) add(job *Job, x *candidate) {
	if x.prepaid && job.Unreserved || x.Listing == w.holds {
		return
	}
	if why := w.full(x); why != "" {
		w.unlisted.add(why, 1)
		return
	}
	w.options = append(
		w.options,
		Option{
			Listing:       x.Listing,
			perHourOfWork: x.perWork,
			speed:         x.speed,
			way:           x.way,
			spot:          x.spot,
			prepaid:       x.prepaid,
		},
	)
	o := &w.options[len(w.options)-1]
	if x.prepaid {
		w.reserve(job, o)
	}
	w.bar(job, o)
	o.payable = o.why == "" && (!o.spot || job.Rule != policy.OnDemand)
}

// bar says why o does not do for the job though it does for its class.
func (w *lineup) bar(job *Job, o *Option) {
	critical := job.Need.Critical && o.spot
	switch {
	case len(job.Need.Ladder) > 0 || critical && len(job.Need.Variants) > 0:
		w.climb(job, o)
	case critical:
		o.why = WrongKind
	}
	if o.why == "" && job.GPULimited && o.Offer.Accelerators > job.GPURoom {
		o.why = OverQuota
	}
	if o.why == "" && shortLived(job, o) {
		o.why = ShortLived
	}
}

// full says why x is not weighed, or "", and counts it.
func (w *lineup) full(x *candidate) Reason {
	most, n := mostOnDemand, w.onDemand
	if x.spot {
		most, n = mostSpot, w.spot
	}
	filled := len(w.options) >= mostOptions
	switch {
	case filled && n >= most:
		return NotWeighed // its quote need not be read
	case !x.Quote.Available && !x.Quote.Untried:
		if filled {
			return Unavailable
		}
	case x.spot:
		if w.spot++; w.spot > mostSpot {
			return NotWeighed
		}
	default:
		if w.onDemand++; w.onDemand > mostOnDemand {
			return NotWeighed
		}
	}
	return ""
}

// reserve takes into account how the job may have what is reserved.
func (w *lineup) reserve(job *Job, o *Option) {
	r := job.reservation(o.Offer.ID)
	o.promised = r.Promised
	if r.InUse {
		o.Listing = w.copy(o.Listing)
		o.Quote.Available = false
	}
}

// copy returns a copy of a listing that lasts as long as the options.
func (w *lineup) copy(l *Listing) *Listing {
	if w.copied == len(w.copies) {
		w.copies = append(w.copies, new(Listing))
	}
	w.copied++
	k := w.copies[w.copied-1]
	*k = *l
	return k
}

// climb asks which way of doing the work the ladder allows on o: the fastest of those.
func (w *lineup) climb(job *Job, o *Option) {
	way, why, ok := job.Need.fit(job.Open, o.Listing)
	switch {
	case !ok:
		o.why = why
	case way != o.way:
		o.way, o.speed = way, job.Need.speed(way, o.Listing)
		o.perHourOfWork, w.moved = o.perWork(o.speed), true
	}
}

// held is the machine that the job holds. Where nobody knows a newer price it is billed on.
func (w *lineup) held(job *Job, c *Class) (Option, bool) {
	if job.Held == "" {
		return Option{}, false
	}
	l := c.listings.Of(job.Held)
	if l == nil || l.prepaid() && job.Unreserved {
		return Option{}, false
	}
	w.holds = l
	o := Option{Listing: l, held: true, spot: l.spot(), prepaid: l.prepaid()}
	if !l.Quote.Priced {
		o.Listing = w.copy(l)
		o.Quote.Rate, o.Quote.Priced = job.HeldRate, true
	}
	if l.prepaid() {
		w.reserve(job, &o)
	}
	_, why, ok := job.Need.fit(nil, o.Listing) // it is held, and the ladder sends nobody away
	if !ok {
		o.why = cmp.Or(why, NoOffer)
	}
	o.payable = ok
	o.way = 1 + slices.IndexFunc(job.Need.Variants, func(v Variant) bool { return v.Name == job.Variant })
	o.speed = job.Need.speed(o.way, l)
	o.perHourOfWork = o.perWork(o.speed)
	return o, true
}

// sort puts options in order whose ladder changed what the work costs on them.
func (w *lineup) sort(job *Job) {
	slices.SortFunc(w.options, func(a, b Option) int { return job.compare(&a, &b) })
}

// compare is the order of options: see lineup.
func (job *Job) compare(a, b *Option) int {
	if a.perHourOfWork != b.perHourOfWork {
		return cmp.Compare(a.perHourOfWork, b.perHourOfWork)
	}
	away := func(o *Option) bool {
		return job.CheckpointRegion != "" && !o.spot && o.Offer.Region != job.CheckpointRegion
	}
	return cmp.Or(compareBool(b.held, a.held), compareBool(away(a), away(b)), cmp.Compare(a.Offer.ID, b.Offer.ID))
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

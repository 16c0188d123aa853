package plan

import (
	"cmp"
	"slices"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
)

// Option is a listing from the point of view of one job.
type Option struct {
	*Listing
	perHourOfWork float64
	speed         float64 // of the work on it
	way           int     // way to do the work on it: 0 is the job's own, then the variants
	units         int     // processors or accelerators on it: see Need.Units; 0: any number
	why           Reason  // why it is unusable; empty: usable
	spot, prepaid bool
	held          bool
	payable       bool         // it suits the job and its policy, so it counts for the budget
	promised      bool         // reserved for another job
	reads         money.Amount // for reading the job's inputs on one machine of it
	losses        float64      // see Job.Losses
	readPart      float64      // part of perHourOfWork for that, 0 once they are read
}

// A decision weighs the available options that are cheapest per unit of work: up to mostSpot spot and mostOnDemand
// non-preemptible ones. It weighs unavailable options only among the first mostOptions.
const (
	mostOptions  = 5000
	mostSpot     = 4000
	mostOnDemand = mostOptions - mostSpot
)

// lineup is the options of a decision while they are put in order.
type lineup struct {
	// the cheapest per unit of work first, then the held one, then those in the checkpoint's region, then by ID
	options  []Option
	copies   []*Listing
	copied   int
	holds    *Listing // listing of the held machine
	unlisted tally    // listings that are unsuitable, or not weighed
	others   []Option // first unsuitable listings

	spot, onDemand int // numbers of available options
	moved          bool
}

// fill puts the listings of the class into the order of the job. It sorts nothing: only the job's location decides
// between options at the same price.
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

// complete reports whether no more options are weighed.
func (w *lineup) complete() bool {
	return w.spot >= mostSpot && w.onDemand >= mostOnDemand && len(w.options) >= mostOptions
}

// rest counts the candidates from i on, which are not weighed.
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

// unlist counts the listings that do not suit the class. It omits the held machine, which is an option.
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

// other returns an unsuitable listing as an option.
func other(l *Listing, why Reason) Option {
	return Option{Listing: l, perHourOfWork: l.perWork(1), why: why, spot: l.spot()}
}

// begin makes room for n options, so that they do not move in memory until the next decision.
func (w *lineup) begin(n int) {
	w.options, w.unlisted, w.others = slices.Grow(w.options[:0], n), w.unlisted[:0], w.others[:0]
	w.copied, w.spot, w.onDemand, w.moved, w.holds = 0, 0, 0, false, nil
}

// away reports whether x is non-preemptible and outside the checkpoint's region.
func (job *Job) away(x *candidate) bool {
	return job.CheckpointRegion != "" && !x.spot && x.Offer.Region != job.CheckpointRegion
}

// add adds an option that the job does not hold.
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
			units:         x.units,
			spot:          x.spot,
			prepaid:       x.prepaid,
			losses:        job.Losses,
		},
	)
	o := &w.options[len(w.options)-1]
	if x.prepaid {
		w.reserve(job, o)
	}
	if job.Crowded && x.shared {
		w.resize(job, o)
	}
	if job.reads(o, x.reads) {
		o.perHourOfWork, w.moved = o.perHourOfWork+o.readPart, true
	}
	w.bar(job, o)
	o.payable = o.why == "" && (!o.spot || job.Rule != policy.OnDemand)
}

// bar sets the reason why o does not suit the job although it suits the class.
func (w *lineup) bar(job *Job, o *Option) {
	critical := job.Need.Critical && o.spot
	switch {
	case len(job.Need.Ladder) > 0 || critical && len(job.Need.Variants) > 0:
		w.climb(job, o)
	case critical:
		o.why = WrongKind
	}
	if o.why == "" && job.overQuota(o.Offer.Accelerators, o.Quote.Rate) {
		o.why = OverQuota
	}
	if o.why == "" && shortLived(job, o) {
		o.why = ShortLived
	}
}

// overQuota reports whether a machine has more GPUs, or a higher price, than a quota has left.
func (job *Job) overQuota(gpus int, rate money.Rate) bool {
	return job.GPULimited && gpus > job.GPURoom || job.RateLimited && rate > job.RateRoom
}

// full returns why x is not weighed, or "", and counts it.
func (w *lineup) full(x *candidate) Reason {
	most, n := mostOnDemand, w.onDemand
	if x.spot {
		most, n = mostSpot, w.spot
	}
	filled := len(w.options) >= mostOptions
	switch {
	case filled && n >= most:
		return NotWeighed // no need to read its quote
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

// reserve applies the terms under which the job may have a reserved option.
func (w *lineup) reserve(job *Job, o *Option) {
	r := job.reservation(o.Offer.ID)
	o.promised = r.Promised
	if r.InUse {
		o.Listing = w.copy(o.Listing)
		o.Quote.Available = false
	}
}

// copy returns a copy of a listing that stays valid as long as the options.
func (w *lineup) copy(l *Listing) *Listing {
	if w.copied == len(w.copies) {
		w.copies = append(w.copies, new(Listing))
	}
	w.copied++
	k := w.copies[w.copied-1]
	*k = *l
	return k
}

// climb finds the fastest way of doing the work that the ladder allows on o.
func (w *lineup) climb(job *Job, o *Option) {
	way, why, ok := job.Need.fit(job.Open, o.Listing)
	switch {
	case !ok:
		o.why = why
	case way != o.way:
		o.way = way
		w.size(job, o)
	}
}

// resize gives the job the least portion of a shared machine.
func (w *lineup) resize(job *Job, o *Option) {
	if job.Need.Units(o.way, o.Listing, true) != o.units {
		w.size(job, o)
	}
}

// size sets how many processors or accelerators the job has of o, how fast it is with them, and what its work costs.
func (w *lineup) size(job *Job, o *Option) {
	o.units = job.Need.Units(o.way, o.Listing, job.Crowded)
	o.speed = job.Need.speedOn(o.way, o.Listing, o.units)
	o.perHourOfWork, w.moved = o.perWork(o.speed)+o.readPart, true
}

// held returns the machine that the job holds. If no newer price is known, it keeps the price that it is billed at.
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
	_, why, ok := job.Need.fit(nil, o.Listing) // the ladder does not force a job off its machine
	if !ok {
		o.why = cmp.Or(why, NoOffer)
	}
	o.payable = ok
	o.way = 1 + slices.IndexFunc(job.Need.Variants, func(v Variant) bool { return v.Name == job.Variant })
	o.units = cmp.Or(job.HeldUnits, job.Need.Units(o.way, l, false))
	o.speed = job.Need.speedOn(o.way, l, o.units)
	cost, _ := job.Need.ReadCost(&l.Offer) // where it is unknown, the job has read its inputs all the same
	job.reads(&o, cost)
	o.perHourOfWork = o.perWork(o.speed) + o.readPart
	return o, true
}

// sort sorts the options again after the ladder changed the cost of the work on them.
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

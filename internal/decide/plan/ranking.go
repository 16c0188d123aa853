package plan

import (
	"slices"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/market"
)

// ranking is what is for sale, as far as the job could use it. It is valid until the
// planner's next decision.
type ranking struct {
	options              []Option      // what does for its class, the cheapest per unit of work first
	unlisted             []ReasonCount // what is not among the options: it does not do, or was not weighed
	others               []Option      // some of what does not do
	usable               []*Option     // of the options, those that can be had now and the held one, in their order
	spots                []*Option     // all spot that would do, in their order
	spot, onDemand, held *Option       // the best of each
	onDemandLate         bool          // the work would not be done in time on on-demand
	asleep               *Option       // the best spot that cannot be had now
	fits, affordable     int
	cheapest             float64 // of all that would do, the least per work
	later                bool    // something does for the job on another rung, with more room in a quota, or ends too soon
	untried              bool    // of something that would do nobody knows whether it can be had
	sold                 bool    // spot that is worth waiting for is for sale
	budget               budgetLimits
}

// room is what a ranking is made in, from one decision to the next.
type room struct {
	lineup lineup
	usable []*Option
	spots  []*Option
}

// rank lines up what the class has and says why of each option that cannot be used now.
func (m *room) rank(job *Job, c *Class) ranking {
	m.lineup.fill(job, c)
	return m.weighed(job)
}

func (m *room) weighed(job *Job) ranking {
	w := &m.lineup
	r := ranking{
		options: w.options, unlisted: w.unlisted, others: w.others,
		usable: slices.Grow(m.usable[:0], len(w.options)), spots: slices.Grow(m.spots[:0], len(w.options)),
	}
	r.weigh(job)
	m.usable, m.spots = r.usable, r.spots
	return r
}

// weigh is rank of options that are lined up.
func (r *ranking) weigh(job *Job) {
	r.budget = checkBudget(job, r)
	for i := range r.options {
		o := &r.options[i]
		if o.why != "" {
			r.later = r.later || o.why == LaterRung || o.why == OverQuota
			continue
		}
		if !o.held && endsSoon(job, o) { // which says nothing of the budget
			o.why, r.later = EndsSoon, true
			continue
		}
		r.fits++
		if o.why = r.unaffordable(job, o); o.why == "" {
			r.affordable++
			r.offer(job, o)
		}
	}
}

// offer takes into account what the job could pay for.
func (r *ranking) offer(job *Job, o *Option) {
	if o.spot && !o.held && r.undercut(job, o) { // what cannot be interrupted costs no more
		o.why = CostsMore
		return
	}
	if o.spot {
		r.sold = true
		r.spots = append(r.spots, o)
	}
	switch o.why = o.unavailable(job); o.why {
	case "":
		r.use(job, o)
	case Untried:
		r.untried = true
	case Unavailable:
		if o.spot && r.asleep == nil {
			r.asleep = o
		}
	default:
	}
}

// unaffordable says why the job should not pay for o, or "".
func (r *ranking) unaffordable(job *Job, o *Option) Reason {
	if !o.held && job.Limited && !job.DeadlineFirst {
		// It starts, saves once, and is paid for: else all of the money goes for nothing.
		floor := max(job.Progress.Restart+job.Grace, o.Offer.Billing.Minimum, time.Minute)
		if o.Quote.Rate.Until(floor).Add(job.DueElsewhere).Cmp(job.Left) > 0 {
			return OverBudget
		}
	}
	if r.budget.over(job, o, r.cheapest) {
		r.budget.kept = true
		return OverBudget
	}
	return ""
}

// unavailable says why o cannot be had now, or "".
func (o *Option) unavailable(job *Job) Reason {
	switch {
	case o.promised:
		return Promised
	case o.held:
		return ""
	case o.Quote.Untried:
		return Untried
	case job.cools(o):
		return CoolingOff
	case !o.Quote.Available:
		return Unavailable
	}
	return ""
}

// use takes o among what can be used now.
func (r *ranking) use(job *Job, o *Option) {
	r.usable = append(r.usable, o)
	if o.held {
		r.held = o
	}
	if o.spot {
		if r.spot == nil || o.held {
			r.spot = o
		}
		return
	}
	switch {
	case r.onDemand == nil, r.onDemandLate && perHour(r.onDemand) < perHour(o),
		!r.onDemandLate && job.nearer(o, r.onDemand) && !late(job, o):
		r.onDemand, r.onDemandLate = o, late(job, o)
	}
}

// undercut reports whether on-demand costs no more than spot of o: any, or where a move of the checkpoint costs
// something, any in its region. Options come the cheapest first.
func (r *ranking) undercut(job *Job, o *Option) bool {
	if r.onDemand == nil || r.onDemandLate || !job.moveCosts() {
		return r.onDemand != nil && !r.onDemandLate
	}
	return slices.ContainsFunc(r.usable, func(x *Option) bool { return !x.spot && x.Offer.Region == o.Offer.Region })
}

// nearer reports whether the work left costs less on a than on b, which is no dearer by the hour, because the
// checkpoint need not go so far. The published policies stay where it is.
func (job *Job) nearer(a, b *Option) bool {
	if job.migrates(a) || !job.migrates(b) {
		return false
	}
	if !job.byDefault() || !job.Progress.Known {
		return true
	}
	there := float64(perWork(b)*job.Progress.Left.Hours()) + float64(b.Quote.Rate.Float()*job.Transfer.Hours()) +
		job.moving(b).Float()
	return perWork(a)*job.Progress.Left.Hours() <= there
}

// probe returns the offer to ask about: one at a time, round all spot that would
// do, while none is held. ok is false where there is nothing to ask, or an
// answer to this decision's question.
func (r *ranking) probe(job *Job, v *policy.View) (id market.OfferID, ok bool) {
	if !r.untried || len(r.spots) == 0 || job.Probed || v.Held == policy.Spot || job.Rule == policy.OnDemand ||
		job.Need.Critical {
		return "", false
	}
	names := make([]market.OfferID, 0, len(r.spots))
	for _, o := range r.spots {
		names = append(names, o.Offer.ID)
	}
	slices.Sort(names)
	id = names[(job.Probes+1)%len(names)]
	return id, slices.ContainsFunc(r.spots, func(o *Option) bool { return o.Offer.ID == id && o.why == Untried })
}

// speed is that of the machine that the job would fall back to; 0 is 1.
func (r *ranking) speed() float64 {
	switch {
	case r.onDemand != nil:
		return r.onDemand.speed
	case r.spot != nil:
		return r.spot.speed
	}
	return 0
}

// view is what a rule sees: its work is counted on the machine that it would
// fall back to.
func (r *ranking) view(job *Job) policy.View {
	v := policy.View{Progress: job.Progress, Held: policy.Wait, Spot: r.spot != nil, Sold: r.sold, Warming: job.Warming}
	v.Progress = scaled(job.Progress, r.speed())
	if r.held != nil {
		v.Held = policy.NonPreemptible
		if r.held.spot {
			v.Held = policy.Spot
		}
	}
	return v
}

// Wants reports whether the job would take l if nothing else were for sale besides what
// it holds, and l were not reserved for others, and how fast its work is done there.
func (m *Planner) Wants(job Job, class *Class, l *Listing) (speed float64, ok bool) {
	class.follow()
	r := m.room.rankOnly(&job, class, l)
	v := r.view(&job)
	if d := m.decide(&job, &r, &v); d.Take != l.Offer.ID {
		return 0, false
	}
	for i := range r.options {
		if o := &r.options[i]; o.Offer.ID == l.Offer.ID {
			return perHour(o), true
		}
	}
	return 0, false
}

// rankOnly is rank of one offer and the held one.
func (m *room) rankOnly(job *Job, c *Class, l *Listing) ranking {
	w := &m.lineup
	w.begin(2)
	held, holds := w.held(job, c)
	if x, why := c.weigh(l); why == "" {
		w.add(job, &x)
	}
	if holds {
		w.options = append(w.options, held)
	}
	w.sort(job)
	return m.weighed(job)
}

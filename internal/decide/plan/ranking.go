package plan

import (
	"slices"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/market"
)

// ranking holds the usable offers for a job. It is valid until the planner's next decision.
type ranking struct {
	options              []Option      // what suits its class, the cheapest per unit of work first
	unlisted             []ReasonCount // listings that are unsuitable, or were not weighed
	others               []Option      // some unsuitable listings
	usable               []*Option     // options that are available now, and the held one, in order
	spots                []*Option     // all suitable spot options, in order
	spot, onDemand, held *Option       // the best of each
	onDemandLate         bool          // the work would finish late on on-demand
	asleep               *Option       // the best spot option that is unavailable now
	fits, affordable     int
	cheapest             float64 // lowest price per unit of work of the suitable options
	later                bool    // a suitable option is on another rung, needs more room in a quota, or ends too soon
	untried              bool    // the availability of a suitable option is unknown
	sold                 bool    // spot that is worth waiting for is for sale
	budget               budgetLimits
}

// room holds buffers that rankings reuse from one decision to the next.
type room struct {
	lineup lineup
	usable []*Option
	spots  []*Option
}

// rank puts the options of the class in order, and finds why each one cannot be used now.
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

// weigh is rank for options that are already in order.
func (r *ranking) weigh(job *Job) {
	r.budget = checkBudget(job, r)
	for i := range r.options {
		o := &r.options[i]
		if o.why != "" {
			r.later = r.later || o.why == LaterRung || o.why == OverQuota
			continue
		}
		if !o.held && endsSoon(job, o) { // this does not count for the budget
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

// offer classifies an option that the job can pay for.
func (r *ranking) offer(job *Job, o *Option) {
	if o.spot && !o.held && r.undercut(job, o) { // non-preemptible capacity costs no more
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

// unaffordable returns why the job should not pay for o, or "".
func (r *ranking) unaffordable(job *Job, o *Option) Reason {
	if !o.held && job.Limited && !job.DeadlineFirst {
		// The job must start, bring its inputs, save once and pay for all that, or all of the money is wasted.
		floor := max(job.Progress.Restart+job.Grace, o.Offer.Billing.Minimum, time.Minute)
		if o.Quote.Rate.Until(floor).Add(job.DueElsewhere).Add(job.Need.brings(&o.Offer)).Cmp(job.Left) > 0 {
			return OverBudget
		}
	}
	if r.budget.over(job, o, r.cheapest) {
		r.budget.kept = true
		return OverBudget
	}
	return ""
}

// unavailable returns why o is not available now, or "".
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

// use adds o to the usable options.
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

// undercut reports whether on-demand costs no more than spot of o. If moving the checkpoint costs something, only
// on-demand in the region of o counts. Options come cheapest first.
func (r *ranking) undercut(job *Job, o *Option) bool {
	if r.onDemand == nil || r.onDemandLate || !job.moveCosts() {
		return r.onDemand != nil && !r.onDemandLate
	}
	return slices.ContainsFunc(r.usable, func(x *Option) bool { return !x.spot && x.Offer.Region == o.Offer.Region })
}

// nearer reports whether the remaining work costs less on a than on b because the checkpoint moves less far. b is
// no dearer by the hour. The published policies stay where the checkpoint is.
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

// probe returns the next offer to probe. It goes round all suitable spot offers, one at a time, while the job holds
// none. ok is false if there is nothing to probe, or if this decision already has the answer to a probe.
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

// speed returns the speed of the machine that the job would fall back to; 0 means 1.
func (r *ranking) speed() float64 {
	switch {
	case r.onDemand != nil:
		return r.onDemand.speed
	case r.spot != nil:
		return r.spot.speed
	}
	return 0
}

// view returns what a policy sees. Its work is counted on the machine that the job would fall back to.
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

// Wants reports whether the job would take l if nothing else were for sale besides what it holds and l were not
// reserved for others, and how fast its work is done there.
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

// rankOnly is rank for one offer and the held one.
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

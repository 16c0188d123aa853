package plan

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/policy"
)

// sorted is what is for sale, as far as the job could use it.
type sorted struct {
	usable           []*Option // can be had now or is held, the least per work first
	rejected         []Rejection
	spot, firm, held *Option // the best of each
	asleep           *Option // the best spot that cannot be had now
	fits, affordable int
	cheapest         float64          // of all that would do, the least per work
	later            bool             // something does for the job on a rung that is not open, or when a quota has more room
	untried          []market.OfferID // spot that would do, by name, where somebody has to look
	spots            []*Option        // all spot that would do
	sold             bool             // spot that is worth waiting for is for sale
	purse            purse
}

// key is what an option is ranked by.
type key struct {
	o    *Option
	per  float64
	held bool
	away bool   // firm, and not where the checkpoint is
	why  Reason // why it can never do, or ""
}

func (a *key) compare(b *key) int {
	switch {
	case a.per != b.per:
		return cmp.Compare(a.per, b.per)
	case a.held != b.held:
		return -compareBool(a.held, b.held)
	case a.away != b.away:
		return compareBool(a.away, b.away)
	}
	return cmp.Compare(a.o.Offer.ID, b.o.Offer.ID)
}

// room is what sort works in, from one decision to the next: what it returns is
// valid until then.
type room struct {
	ranked   []key
	fit      []ranks
	usable   []*Option
	spots    []*Option
	rejected []Rejection
}

// sort ranks the options and rejects what the job cannot use now.
func (r *room) sort(job *Job, options []Option) sorted {
	ranked := r.ranked[:0]
	job.Need.plain = isPlain(options)
	for i := range options {
		o := &options[i]
		held := o.Offer.ID == job.Held
		if held && !o.Quote.Priced {
			known := *o
			known.Quote.Rate, known.Quote.Priced = job.HeldRate, true // nobody knows a newer price, and it is billed on
			o = &known
		}
		way, why, ok := job.Need.fit(job.Open, o)
		if !ok {
			why = cmp.Or(why, NoOffer)
			if held && why == LaterRung { // it is held, and nobody sends it away for that
				way, _, ok = job.Need.fit(nil, o)
			}
		}
		if held {
			way = max(0, 1+slices.IndexFunc(job.Need.Variants, func(v Variant) bool { return v.Name == job.Variant }))
		}
		if ok {
			why = ""
		}
		if ok && job.GPULimited && o.Offer.Accelerators > job.GPURoom && !held {
			why = OverQuota
		}
		o.way, o.speed = way, 0
		if way >= 0 {
			_, faster := job.Need.way(way)
			o.speed = cmp.Or(max(o.Offer.Speed, 0), 1) * faster
		}
		ranked = append(ranked, key{o, perWork(o), held, o.Offer.Capacity != market.Spot && job.Home != "" && o.Offer.Region != job.Home, why})
	}
	slices.SortFunc(ranked, func(a, b key) int { return a.compare(&b) })
	s := sorted{usable: r.usable[:0], spots: r.spots[:0], rejected: slices.Grow(r.rejected[:0], len(ranked))} // in the end all but one may be rejected
	floor := max(job.Progress.Restart, time.Minute)
	fit, more := r.fit[:0], false
	for _, k := range ranked {
		if k.why == "" && (k.held || k.o.Offer.Capacity != market.Spot || job.Rule != policy.OnDemand) {
			fit = append(fit, ranks{k.o, k.held})
		}
		more = more || k.why == Unpriced || k.why == LaterRung || k.why == OverPrice
	}
	s.purse = weigh(job, fit, more)
	if len(fit) > 0 {
		s.cheapest = perWork(fit[0].o)
	}
	for _, k := range ranked {
		o, held := k.o, k.held
		if k.why != "" {
			s.later = s.later || k.why == LaterRung || k.why == OverQuota
			s.rejected = append(s.rejected, rejection(o, k.why))
			continue
		}
		s.fits++
		if !held && ends(job, o) {
			s.rejected = append(s.rejected, rejection(o, EndsSoon))
			continue
		}
		spot := o.Offer.Capacity == market.Spot
		if !held && job.Limited && !job.DeadlineFirst && o.Quote.Rate.Until(floor).Cmp(job.Left) > 0 {
			s.rejected = append(s.rejected, rejection(o, OverBudget))
			continue
		}
		if s.purse.over(job, ranks{o, held}, s.cheapest) {
			s.purse.kept = true
			s.rejected = append(s.rejected, rejection(o, OverBudget))
			continue
		}
		s.affordable++
		if spot && !held && s.firm != nil && !late(job, s.firm) { // what cannot be taken away costs no more
			s.rejected = append(s.rejected, rejection(o, CostsMore))
			continue
		}
		s.sold = s.sold || spot
		if spot {
			s.spots = append(s.spots, o)
		}
		switch {
		case o.Kept:
			s.rejected = append(s.rejected, rejection(o, Promised))
			continue
		case held:
		case o.Quote.Untried:
			s.untried = append(s.untried, o.Offer.ID)
			s.rejected = append(s.rejected, rejection(o, Untried))
			continue
		case o.Cooling:
			s.rejected = append(s.rejected, rejection(o, CoolingOff))
			continue
		case !o.Quote.Available:
			if spot && s.asleep == nil {
				s.asleep = o
			}
			s.rejected = append(s.rejected, rejection(o, Unavailable))
			continue
		}
		s.usable = append(s.usable, o)
		if held {
			s.held = o
		}
		if spot && (s.spot == nil || held) {
			s.spot = o
		}
		if !spot && (s.firm == nil || late(job, s.firm) && perHour(s.firm) < perHour(o)) {
			s.firm = o
		}
	}
	*r = room{ranked, fit, s.usable, s.spots, s.rejected}
	return s
}

// isPlain reports whether nothing for sale has an accelerator.
func isPlain(options []Option) bool {
	for i := range options {
		if options[i].Offer.Accelerators > 0 {
			return false
		}
	}
	return true
}

// look returns the offer to ask about: one at a time, round all spot that would
// do, while none is held. ok is false where there is nothing to ask, or an
// answer to this decision's question.
func (s *sorted) look(job *Job, v *policy.View) (id market.OfferID, ok bool) {
	if len(s.untried) == 0 || job.Looked || v.Held == policy.Spot || job.Rule == policy.OnDemand || job.Need.Critical {
		return "", false
	}
	names := make([]market.OfferID, 0, len(s.spots))
	for _, o := range s.spots {
		names = append(names, o.Offer.ID)
	}
	slices.Sort(names)
	id = names[(job.Looks+1)%len(names)]
	return id, slices.Contains(s.untried, id)
}

// late reports whether the work left would not be done in time on o.
func late(job *Job, o *Option) bool {
	slack, ok := scaled(job.Progress, o.speed).Slack(o.Offer.ID == job.Held)
	return ok && slack < 0
}

// scaled is p with its work counted on a machine of that speed.
func scaled(p policy.Progress, speed float64) policy.Progress {
	if speed > 0 && speed != 1 {
		p.Left = time.Duration(float64(p.Left) / speed)
		p.Done = time.Duration(float64(p.Done) / speed)
		p.Doubt = time.Duration(float64(p.Doubt) / speed)
	}
	return p
}

// speed is that of the machine that the job would fall back to; 0 is 1.
func (s *sorted) speed() float64 {
	switch {
	case s.firm != nil:
		return s.firm.speed
	case s.spot != nil:
		return s.spot.speed
	}
	return 0
}

// view is what a rule sees: its work is counted on the machine that it would
// fall back to.
func (s *sorted) view(job *Job) policy.View {
	v := policy.View{Progress: job.Progress, Held: policy.Wait, Spot: s.spot != nil, Sold: s.sold, Warming: job.Warming}
	v.Progress = scaled(job.Progress, s.speed())
	if s.held != nil {
		v.Held = policy.Firm
		if s.held.Offer.Capacity == market.Spot {
			v.Held = policy.Spot
		}
	}
	return v
}

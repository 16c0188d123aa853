package plan

import (
	"math"
	"slices"
	"strings"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/policy"
	"scrimp/internal/policy/place"
)

// Turn is a change of a spot market: from At on a machine can be had there, or not.
type Turn struct {
	At time.Time `json:"at"`
	Up bool      `json:"up,omitempty"`
}

// placed is a job that may run in several zones: what is kept of it between two
// decisions. It is learned from the offers' turns, and after a loss learned again.
type placed struct {
	key string
	see *place.Foresight
	job place.Job
	fed []time.Time // by zone, the last turn taken in
}

// memory is how far back turns count.
const memory = 72 * time.Hour

// several returns the spot markets of a job that may choose between zones, in the
// order of their names; nil where it may not, or where they are no alternatives to
// each other (other speeds, prices that do not undercut on-demand).
func (s *sorted) several(job *Job) []*Option {
	if job.Rule != "" && job.Rule != policy.Default || job.Need.Critical || s.firm == nil || len(s.spots) < 2 {
		return nil
	}
	list := make([]*Option, 0, len(s.spots))
	for _, o := range s.spots {
		if perHour(o) != perHour(s.firm) || o.way != s.firm.way || perWork(o) >= perWork(s.firm) {
			return nil
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *Option) int { return strings.Compare(string(a.Offer.ID), string(b.Offer.ID)) })
	return list
}

// tickOf is the time between two looks that a job in several zones is weighed with.
func tickOf(v *policy.View) time.Duration {
	if v.Look > 0 {
		return v.Look
	}
	d := max(v.Detect, time.Minute)
	for v.Deadline.Sub(v.Began) > 512*d {
		d *= 2
	}
	return d
}

// placing is the problem that a job in several zones is, with the policy that has
// seen what was seen of them so far.
func (m *Mind) placing(job *Job, s *sorted, v *policy.View, zones []*Option) *placed {
	tick := tickOf(v)
	unit := max(tick/20, 1)
	restart := (v.Restart - job.Transfer + unit - 1) / unit * unit
	p := &placed{job: place.Job{
		Tick: tick, Work: v.Left + v.Done, Deadline: v.Deadline.Sub(v.Began) - v.Reserve - v.Detect, Restart: restart,
		Transfer: job.Transfer, Carry: job.Carry, Looks: slices.ContainsFunc(zones, func(o *Option) bool { return o.Quote.Untried }),
	}}
	var key strings.Builder
	for _, o := range zones {
		firm := s.firm.Quote.Rate
		p.job.Zones = append(p.job.Zones, place.Zone{Name: string(o.Offer.ID), Region: o.Offer.Region, OnDemand: firm})
		key.WriteString(string(o.Offer.ID) + "\n")
	}
	for _, n := range []int64{int64(tick), int64(p.job.Deadline), int64(restart), int64(job.Transfer), int64(s.firm.Quote.Rate), v.Began.UnixNano()} {
		key.WriteString(money.Picos(n).String() + "\n")
	}
	p.key = key.String()
	if kept := m.placed[job.ID]; kept != nil && kept.key == p.key {
		p = kept
	} else {
		p.see, p.fed = &place.Foresight{Job: &p.job}, make([]time.Time, len(zones))
		if len(m.placed) >= minds {
			clear(m.placed)
		}
		m.placed[job.ID] = p
	}
	for z, o := range zones {
		p.feed(z, o.Past, v)
	}
	return p
}

// feed tells the policy of the turns that it has not heard of, and on a first
// sight of how the zone was between them.
func (p *placed) feed(z int, past []Turn, v *policy.View) {
	tick := func(t time.Time) int { return int(math.Floor(float64(t.Sub(v.Began)) / float64(p.job.Tick))) }
	now := tick(v.Now)
	for i, t := range past {
		if !t.At.After(p.fed[z]) || t.At.Before(v.Now.Add(-memory)) || tick(t.At) >= now {
			continue
		}
		first := p.fed[z].IsZero()
		p.fed[z] = t.At
		p.see.Saw(z, t.Up, tick(t.At))
		until := now
		if i+1 < len(past) {
			until = min(now, tick(past[i+1].At))
		}
		if first || i+1 < len(past) {
			if until-1 > tick(t.At) {
				p.see.Saw(z, t.Up, until-1)
			}
		}
	}
}

// sight is the state of the market as the policy sees it.
func (p *placed) sight(job *Job, s *sorted, v *policy.View, zones []*Option) place.View {
	w := place.View{
		Tick: int(v.Now.Sub(v.Began) / p.job.Tick), Left: v.Left + v.Doubt, Done: v.Done, Overhead: v.Warming, Home: job.Home,
		Prices: make([]money.Rate, len(zones)), Seen: make([]place.Sight, len(zones)),
	}
	for z, o := range zones {
		held := o.Offer.ID == job.Held
		w.Prices[z] = o.Quote.Rate
		switch {
		case held:
			w.Held, w.Zone, w.Seen[z] = place.Spot, z, place.Up
		case o.Quote.Untried:
		case o.Quote.Available && !o.Cooling:
			w.Seen[z] = place.Up
		default:
			w.Seen[z] = place.Down
		}
	}
	if s.held != nil && w.Held == place.None {
		w.Held = place.OnDemand
		for z, o := range zones {
			if o.Offer.Region == s.held.Offer.Region {
				w.Zone = z
				break
			}
		}
	}
	return w
}

// place decides for a job that may choose between zones. look is an offer to ask
// about first. The option is nil for waiting.
func (m *Mind) place(d *Decision, job *Job, s *sorted, v *policy.View, zones []*Option) (take *Option, look market.OfferID) {
	if held := s.held; held != nil && held.Offer.Capacity == market.Spot && !held.Quote.Available && !held.Quote.Untried {
		d.Why = Stays // it is about to be lost, and what that means is weighed then
		return held, ""
	}
	p := m.placing(job, s, v, zones)
	w := p.sight(job, s, v, zones)
	if job.Bound != "" && s.held == nil {
		for z, o := range zones {
			if o.Offer.ID == job.Bound && w.Seen[z] == place.Up { // it left its machine for this one
				d.Why = Cheapest
				return o, ""
			}
		}
	}
	if p.job.Looks && !job.Looked && w.Held != place.Spot {
		if z := p.see.Look(w); z >= 0 && zones[z].Quote.Untried {
			d.Why = Looking
			return nil, zones[z].Offer.ID
		}
	}
	c := p.see.Decide(w)
	d.Expect = weighed(p.see.Options(), w, p.job.Tick)
	switch {
	case c.Kind == place.Spot:
		take = zones[c.Zone]
		d.Why = Cheapest
	case c.Kind == place.OnDemand && s.held != nil && s.held.Offer.Capacity != market.Spot:
		take = s.held
	case c.Kind == place.OnDemand:
		take = s.firm
		d.Why = WaitsMore
	default:
		d.Why = WaitsSpot
	}
	if take != nil && take == s.held {
		d.Why = Stays
	}
	return take, ""
}

// placeable reports whether the future of a job in several zones can be weighed.
func placeable(v *policy.View) bool {
	return v.Known && v.Left > 0 && !v.Deadline.IsZero() && v.Deadline.After(v.Began) && !v.Guard(v.Working()) && v.Left+v.Done >= coarse*tickOf(v)
}

// weighed sums up what was weighed: the best of each kind.
func weighed(options []place.Option, w place.View, look time.Duration) *Expect {
	if len(options) == 0 {
		return nil
	}
	e := &Expect{Up: slices.Contains(w.Seen, place.Up), Look: look}
	for _, o := range options {
		slot := &e.Wait
		switch o.Kind {
		case place.Spot:
			slot = &e.Spot
		case place.OnDemand:
			slot = &e.OnDemand
		case place.None:
		}
		if usd := dollars(o.USD); o.USD < 1e8 && usd != nil && (*slot == nil || *usd < **slot) {
			*slot = usd
		}
	}
	return e
}

package plan

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/decide/policy/zonechoice/hazard"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// Record holds the observations of one spot market, for weighing several zones.
type Record = hazard.Record

// placed holds the table of a job that may run in several zones. Its answers depend only on its inputs.
type placed struct {
	see *zonechoice.Foresight
	job zonechoice.Job
}

// is reports whether p can answer for a job over the same zones on the same terms. The total amount of work does
// not matter.
func (p *placed) is(j *zonechoice.Job) bool {
	k := &p.job
	return slices.Equal(k.Zones, j.Zones) && k.Tick == j.Tick && k.Deadline == j.Deadline &&
		k.Restart == j.Restart && k.Transfer == j.Transfer && k.Carry == j.Carry &&
		slices.Equal(k.Egress, j.Egress)
}

// tickOf returns the time between two polls that a job in several zones is weighed with.
func tickOf(v *policy.View) time.Duration {
	if v.Poll > 0 {
		return v.Poll
	}
	d := max(v.Detect, time.Minute)
	for v.Deadline.Sub(v.Began) > quantity.Times(d, ticks) {
		d *= 2
	}
	return d
}

// spanOf returns the time to the deadline that a table over several zones covers. If polls have no fixed interval,
// it is the same for all jobs with the same tick.
func spanOf(v *policy.View) time.Duration {
	if v.Poll > 0 {
		return v.Deadline.Sub(v.Began) - v.Reserve - v.Detect
	}
	return ticks * tickOf(v)
}

// ticks is the largest number of ticks that a job in several zones is weighed with.
const ticks = 512

// TableKey returns a sort key that puts jobs with a common table side by side, as far as that is known in advance. No
// decision depends on it.
func TableKey(p policy.Progress) [3]int64 {
	v := policy.View{Progress: p}
	if !p.Known || p.Deadline.IsZero() {
		return [3]int64{}
	}
	tick := tickOf(&v)
	slack := p.Deadline.Sub(p.Now) - p.Left
	rung := quantity.Int(math.Log(max(1, slack.Hours())) / math.Log(1.25))
	return [3]int64{int64(tick), int64(p.Left / (32 * tick)), rung}
}

// placing returns the problem of a job in several zones, with the table that answers it.
func (m *Planner) placing(job *Job, r *ranking, v *policy.View, zones []*Option) *placed {
	tick := tickOf(v)
	unit := max(tick/20, 1)
	if v.Poll <= 0 { // without fixed polls, similar jobs may share a table
		unit = max(tick/4, 1)
	}
	restart := (v.Restart - job.Transfer + unit - 1) / unit * unit
	p := &placed{job: zonechoice.Job{
		Tick: tick, Work: v.Left + v.Done, Deadline: spanOf(v), Restart: restart,
		Transfer: job.Transfer, Carry: job.EgressCost, Egress: job.Egress,
		Looks: slices.ContainsFunc(zones, func(o *Option) bool { return o.Quote.Untried }),
	}}
	for _, o := range zones {
		onDemand := r.onDemandIn(o.Offer.Region)
		zone := zonechoice.Zone{Name: string(o.Offer.ID), Region: o.Offer.Region,
			OnDemand: onDemand.more() + onDemand.readRate()}
		p.job.Zones = append(p.job.Zones, zone)
	}
	if i := slices.IndexFunc(m.placed, func(kept *placed) bool { return kept.is(&p.job) }); i >= 0 {
		kept := m.placed[i]
		kept.job = p.job
		return kept
	}
	p.see = &zonechoice.Foresight{Job: &p.job, Shelf: m.zones}
	if len(m.placed) >= places {
		m.placed = slices.Delete(m.placed, 0, 1)
	}
	m.placed = append(m.placed, p)
	return p
}

// sight returns the state of the market as the policy sees it.
func (p *placed) sight(job *Job, r *ranking, v *policy.View, zones []*Option) zonechoice.View {
	n := len(zones)
	w := zonechoice.View{
		Tick: int((spanOf(v) - v.Deadline.Add(-v.Reserve-v.Detect).Sub(v.Now)) / p.job.Tick),
		Left: v.Left + v.Margin, Done: v.Done, Overhead: v.Warming, Home: job.CheckpointRegion,
		Now: v.Now, Losses: job.Losses,
		Prices: make([]money.Rate, n), Seen: make([]zonechoice.Sight, n), Past: make([]hazard.Record, n),
	}
	for z, o := range zones {
		held := o.Offer.ID == job.Held
		w.Prices[z] = o.Quote.Rate + o.readRate()
		switch {
		case held:
			w.Held, w.Zone, w.Seen[z] = zonechoice.Spot, z, zonechoice.Up
		case o.Quote.Untried:
		case o.Quote.Available && !job.cools(o):
			w.Seen[z] = zonechoice.Up
		default:
			w.Seen[z] = zonechoice.Down
		}
		w.Past[z] = o.Record
		if w.Seen[z] == zonechoice.Unseen {
			continue
		}
		if w.Past[z].Known && !o.Quote.Untried { // a quote stands until the next one
			w.Past[z] = w.Past[z].See(v.Now.Add(-max(v.Poll, v.Detect)), w.Past[z].Up)
		}
		// it may differ if the offer cools off, or is held and about to be lost
		w.Past[z] = w.Past[z].See(v.Now, w.Seen[z] == zonechoice.Up)
	}
	if r.held != nil && w.Held == zonechoice.None {
		w.Held = zonechoice.OnDemand
		for z, o := range zones {
			if o.Offer.Region == r.held.Offer.Region {
				w.Zone = z
				break
			}
		}
	}
	return w
}

// place decides for a job that may choose between zones. probe is an offer to probe first. take is nil for waiting.
func (m *Planner) place(
	d *Decision, job *Job, r *ranking, v *policy.View, zones []*Option,
) (take *Option, probe market.OfferID) {
	held := r.held
	if held != nil && held.spot && !held.Quote.Available && !held.Quote.Untried {
		d.Why = Stays // it is about to be lost; the decision after that weighs what to do
		return held, ""
	}
	p := m.placing(job, r, v, zones)
	w := p.sight(job, r, v, zones)
	if o := migratingTo(job, zones, &w); o != nil && held == nil {
		d.Why = Cheapest
		return o, ""
	}
	if m.missingZones(d, p, &w) {
		return nil, ""
	}
	if p.job.Looks && !job.Probed {
		if z := p.see.Poll(w); z >= 0 && zones[z].Quote.Untried {
			d.Why = Probing
			return nil, zones[z].Offer.ID
		}
	}
	c := p.see.Decide(w)
	d.Expect = p.expect(w, zones)
	take, d.Why = r.placedIn(c, zones, w.Zone)
	return take, ""
}

// migratingTo returns the offer that the job left its machine for if it is available, or nil.
func migratingTo(job *Job, zones []*Option, w *zonechoice.View) *Option {
	for z, o := range zones {
		if job.MigratingTo != "" && o.Offer.ID == job.MigratingTo && w.Seen[z] == zonechoice.Up {
			return o
		}
	}
	return nil
}

// placedIn returns the option that the choice stands for, nil for waiting, and the reason. now is the zone of the
// held machine.
func (r *ranking) placedIn(c zonechoice.Choice, zones []*Option, now int) (take *Option, why Reason) {
	switch {
	case c.Kind == zonechoice.Spot:
		take, why = zones[c.Zone], Cheapest
	case c.Kind == zonechoice.OnDemand && r.held != nil && !r.held.spot && c.Zone == now:
		take = r.held
	case c.Kind == zonechoice.OnDemand:
		take, why = r.onDemandIn(zones[c.Zone].Offer.Region), WaitsMore
	default:
		why = WaitsSpot
	}
	if take != nil && take == r.held {
		why = Stays
	}
	return take, why
}

// placeable reports whether the future of a job in several zones can be weighed.
func placeable(v *policy.View) bool {
	return v.Known && v.Left > 0 && !v.Deadline.IsZero() && v.Deadline.After(v.Began) &&
		!v.Guard(v.Working()) && v.Left+v.Done >= coarse*tickOf(v)
}

// expect summarizes the weighed options: the best of each kind, and every zone's spot.
func (p *placed) expect(w zonechoice.View, zones []*Option) *Expect {
	options := p.see.Options()
	if len(options) == 0 {
		return nil
	}
	e := &Expect{Up: slices.Contains(w.Seen, zonechoice.Up), NextPoll: p.job.Tick}
	none, best := 1.0, -1
	for z, o := range zones {
		odds := math.Round(p.see.Chance(w, z, time.Hour)*1e4) / 1e4
		e.Zones = append(e.Zones, ZoneExpect{
			Offer: o.Offer.ID, Up: w.Seen[z] == zonechoice.Up, Tried: w.Seen[z] != zonechoice.Unseen, Chance: odds,
		})
		if w.Seen[z] != zonechoice.Up {
			none *= 1 - p.see.Chance(w, z, e.NextPoll)
		}
	}
	for _, o := range options {
		slot := &e.Wait
		switch o.Kind {
		case zonechoice.Spot:
			slot = &e.Spot
		case zonechoice.OnDemand:
			slot = &e.OnDemand
		case zonechoice.None:
		}
		usd := dollars(o.USD)
		if o.USD >= 1e8 || usd == nil {
			continue
		}
		if o.Kind == zonechoice.Spot {
			e.Zones[o.Zone].USD = usd
		}
		if *slot == nil || *usd < **slot {
			*slot = usd
			if o.Kind == zonechoice.Spot {
				best = o.Zone
			}
		}
	}
	if best >= 0 {
		none = 1 - p.see.Chance(w, best, e.NextPoll)
	}
	e.Chance = math.Round((1-none)*1e4) / 1e4
	return e
}

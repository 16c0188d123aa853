package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Playback asks what a job would have done on a market that is known.
type Playback struct {
	Terms   core.Terms    // Steps and Work are known
	Restart time.Duration // boot and restore
	Save    time.Duration // what a save takes
	Trace   market.Trace
	Opened  time.Time     // when the market opened, in market time
	From    time.Duration // of the market, at which the job is submitted
	Policy  policy.Rule
	Planner *plan.Planner // kept from one playback to the next; nil: a new one
	Config  core.Config   // of the core that decides; zero: the default, with time enough to boot

	rhythm rhythm  // of its program
	pace   float64 // steps an hour on speed 1, where the terms do not say it
}

// Played is what came of it.
type Played struct {
	State         core.State
	Why           string
	Cost          money.Amount
	Finish        time.Duration // after the submission
	InTime        bool          // or without a deadline
	Interruptions int
	Moves         int          // to another region, each of which costs what the terms say
	Lost          money.Amount // paid for work that was lost
	LostTime      time.Duration
	Attempts      []*core.Attempt
	Submitted     time.Time
	Ended         time.Time
}

// playFor is when a job that is not done is given up.
const playFor = 400 * 24 * time.Hour

// Play plays the job through the core on the trace: prices and interruptions come
// when the trace says, machines boot and save in the given time, and nothing else
// goes wrong. The same playback has the same outcome.
func Play(p Playback) Played {
	now := p.Opened.Add(p.From)
	p.Trace = onMarketTime(p.Trace)
	w := newWorld(rand.New(rand.NewPCG(1, 1)), now)
	w.calm, w.keeps = true, false
	if p.Planner != nil {
		w.mind = p.Planner
		w.m.Share(p.Planner)
	}
	if p.Terms.Most() > 1 {
		w.several(1)
	}
	for _, l := range p.Trace.Lines {
		w.sells(p, l)
	}
	t := p.Terms
	t.Notify = false
	id := "job"
	pace := cmp.Or(p.pace, float64(t.Steps)/t.Work.Hours())
	w.jobs = []simJob{{id: id, terms: t, steps: t.Steps, pace: pace, boot: p.Restart, save: p.Save,
		program: program{rhythm: p.rhythm}}}
	cfg := p.Config
	if cfg.MaxRunning == 0 {
		cfg = core.DefaultConfig()
	}
	cfg.BootLimit = max(cfg.BootLimit, 4*p.Restart)
	cfg.MaxRunning, cfg.Policy, cfg.Currency = 1, p.Policy, p.Trace.Currency
	w.step(core.Configured{Config: cfg})
	w.quotes()
	w.step(core.JobSubmitted{Job: id, Terms: t})
	for len(w.heap) > 0 && w.now.Sub(now) < playFor {
		w.next()
		if w.m.Quiet() && w.allTold() {
			break
		}
	}
	j, _ := w.m.Job(id)
	return played(j, t, now, w.now)
}

// played sums up a job that was submitted at submitted, and played until end.
func played(j *core.Job, t core.Terms, submitted, end time.Time) Played {
	out := Played{State: j.State(), Why: j.Why(), Cost: j.Spent(end), Submitted: submitted, Ended: end,
		Attempts: j.Attempts()}
	if !j.Finished().IsZero() {
		out.Ended = j.Finished()
	}
	out.Finish = out.Ended.Sub(submitted)
	home := ""
	for _, a := range j.Attempts() {
		if a.From().IsZero() {
			continue
		}
		if home != "" && home != a.Region() {
			out.Moves++
			out.Cost = out.Cost.Add(t.Egress.Moving(home, a.Region(), t.Carry))
		}
		home = a.Region()
	}
	out.InTime = j.State() == core.Succeeded && (t.Deadline.IsZero() || !out.Ended.After(t.Deadline))
	for _, a := range j.Attempts() {
		if a.Taken() {
			out.Interruptions++
		}
		out.Lost = out.Lost.Add(a.Uses()[ledger.Lost])
		out.LostTime += a.LostTime()
	}
	return out
}

// stretched is a span of the wall in market time; a speed of 0 is 1.
func stretched(d time.Duration, speed float64) time.Duration {
	if speed <= 0 || speed == 1 {
		return d
	}
	return time.Duration(float64(d) * speed)
}

// onMarketTime is t with its notices, which are given on the wall, in market time.
// None is longer than its span.
func onMarketTime(t market.Trace) market.Trace {
	if t.Speed <= 0 || t.Speed == 1 {
		return t
	}
	t.Lines = slices.Clone(t.Lines)
	for i := range t.Lines {
		l := &t.Lines[i]
		l.Offer.Notice = stretched(l.Offer.Notice, t.Speed)
		l.Available = slices.Clone(l.Available)
		for k := range l.Available {
			a := &l.Available[k]
			a.Notice = min(stretched(a.Notice, t.Speed), a.To-a.From)
		}
	}
	t.Speed = 1
	return t
}

// sells puts one offer of the trace on sale and lets it follow the trace.
func (w *World) sells(p Playback, l market.TraceLine) {
	z := &zone{name: string(l.Offer.ID)}
	w.zones = append(w.zones, z)
	q := p.Trace.Quote(l, p.From, p.Opened)
	if l.Offer.Capacity == market.Spot {
		z.spot, z.offer, z.rate, z.open = l.Offer.ID, l.Offer, q.Rate, q.Available
	} else {
		z.firm, z.firmOffer, z.firmRate = l.Offer.ID, l.Sold(p.Opened), q.Rate
		w.reserves(z)
	}
	w.follow(z, p, l, p.From)
}

// follow waits for what the trace says next of the offer after a time since the
// market opened: a notice, an end, a beginning, a price.
func (w *World) follow(z *zone, p Playback, l market.TraceLine, at time.Duration) {
	next, changes := p.Trace.Next(l, at)
	if z.spot != "" && z.open {
		if end, notice, ok := p.Trace.Loss(market.TraceLine{Offer: plainOffer(l.Offer), Available: l.Available}, at); ok &&
			notice > 0 && (!changes || end-notice < next) {
			if warn := max(end-notice, at); warn > at {
				w.at(p.Opened.Add(warn), func() { w.follow(z, p, l, warn) })
				return
			}
			// Told now; prices do not move in these last moments.
			w.shut(z, notice, end-at, func() { w.changed(z, p, l, end) })
			return
		}
	}
	if changes {
		w.at(p.Opened.Add(next), func() { w.changed(z, p, l, next) })
	}
}

// plainOffer is o without a lifetime: that ends a machine and not the offer.
func plainOffer(o market.Offer) market.Offer {
	o.MaxLifetime = 0
	return o
}

// changed brings the offer to what the trace says, and follows on.
func (w *World) changed(z *zone, p Playback, l market.TraceLine, at time.Duration) {
	q := p.Trace.Quote(l, at, p.Opened)
	switch {
	case z.firmOffer.Reserved.Count > 0:
		return // it ends by itself
	case z.firm != "":
		z.firmRate = q.Rate
		w.quotes()
	case z.open && !q.Available:
		w.shut(z, 0, 0, func() { w.follow(z, p, l, at) })
		return
	default:
		if q.Rate != z.rate {
			w.reprice(z, q.Rate)
		}
		z.open = q.Available
		w.quotes()
	}
	w.follow(z, p, l, at)
}

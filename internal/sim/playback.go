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

// Playback describes a job on a recorded market.
type Playback struct {
	Terms   core.Terms    // Steps and Work are known
	Restart time.Duration // boot and restore
	Save    time.Duration // duration of a save
	Trace   market.Trace
	Opened  time.Time     // market time at which the market opened
	From    time.Duration // time since Opened at which the job is submitted
	Policy  policy.Rule
	Planner *plan.Planner // shared between playbacks; nil makes a new one
	Config  core.Config   // of the deciding core; zero means the default, with enough time to boot

	rhythm rhythm  // of its program
	pace   float64 // steps an hour at speed 1, unless the terms give it
}

// Played is the result of a playback.
type Played struct {
	State         core.State
	Why           string
	Cost          money.Amount
	Finish        time.Duration // since the submission
	InTime        bool          // true without a deadline
	Interruptions int
	Moves         int          // to another region, at the egress cost of the terms
	Lost          money.Amount // paid for lost work
	LostTime      time.Duration
	Attempts      []*core.Attempt
	Submitted     time.Time
	Ended         time.Time
}

// playFor bounds a playback; a job that is not done by then is given up.
const playFor = 400 * 24 * time.Hour

// Play runs the job through the core on the trace. Prices and interruptions follow the trace, machines boot and save in
// the given time, and nothing else goes wrong. Play is deterministic.
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
	out.Cost = out.Cost.Add(ReadsOf(j))
	for _, a := range j.Attempts() {
		if a.Taken() {
			out.Interruptions++
		}
		out.Lost = out.Lost.Add(a.Uses()[ledger.Lost])
		out.LostTime += a.LostTime()
	}
	return out
}

// stretched converts wall time to market time; a speed of 0 means 1.
func stretched(d time.Duration, speed float64) time.Duration {
	if speed <= 0 || speed == 1 {
		return d
	}
	return time.Duration(float64(d) * speed)
}

// onMarketTime returns t with its notices converted from wall time to market time. A notice is at most as long as its
// period.
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

// sells adds an offer of the trace to the market and makes it follow the trace.
func (w *World) sells(p Playback, l market.TraceLine) {
	z := &zone{name: string(l.Offer.ID)}
	w.zones = append(w.zones, z)
	q := p.Trace.Quote(l, p.From, p.Opened)
	if l.Offer.Capacity == market.Spot {
		z.spot, z.offer, z.rate, z.open = l.Offer.ID, l.Offer, q.Rate, q.Available
	} else {
		z.firm, z.firmOffer, z.onDemandRate = l.Offer.ID, l.Sold(p.Opened), q.Rate
		w.reserves(z)
	}
	w.follow(z, p, l, p.From)
}

// follow waits for the offer's next change in the trace: a notice, an end, a start or a price.
func (w *World) follow(z *zone, p Playback, l market.TraceLine, at time.Duration) {
	next, changes := p.Trace.Next(l, at)
	if z.spot != "" && z.open {
		if end, notice, ok := p.Trace.Loss(market.TraceLine{Offer: plainOffer(l.Offer), Available: l.Available}, at); ok &&
			notice > 0 && (!changes || end-notice < next) {
			if warn := max(end-notice, at); warn > at {
				w.at(p.Opened.Add(warn), func() { w.follow(z, p, l, warn) })
				return
			}
			// The notice is given now. Prices do not change until the end.
			w.shut(z, notice, end-at, func() { w.changed(z, p, l, end) })
			return
		}
	}
	if changes {
		w.at(p.Opened.Add(next), func() { w.changed(z, p, l, next) })
	}
}

// plainOffer returns o without its lifetime, which ends a machine and not the offer.
func plainOffer(o market.Offer) market.Offer {
	o.MaxLifetime = 0
	return o
}

// changed applies the trace to the offer and waits for the next change.
func (w *World) changed(z *zone, p Playback, l market.TraceLine, at time.Duration) {
	q := p.Trace.Quote(l, at, p.Opened)
	switch {
	case z.firmOffer.Reserved.Count > 0:
		return // a reservation ends by itself
	case z.firm != "":
		z.onDemandRate = q.Rate
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

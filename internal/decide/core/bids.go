package core

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/plan/round"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// A round is about so many pools at most and so many jobs of each sort, and as many bids are made
// anew for it as a few milliseconds allow: those that are the oldest.
const (
	mostPools  = 32
	mostBids   = 64
	bidsWeighs = weighedAtOnce
)

// bidding is what a job would give for seats, as it was found out last. It is not part of the
// state: a restart finds it out anew.
type bidding struct {
	since     time.Time // since when the job has waited for a round; zero: it does not
	event     uint64    // that it began with
	at        time.Time // when what follows was found out; zero: never
	epoch     int       // of the job then
	elsewhere money.Rate
	asks      []round.Want
}

// biddingOf is that of j.
func biddingOf(j *Job) *bidding {
	p := lookoutOf(j)
	if p.bid == nil {
		p.bid = &bidding{}
	}
	return p.bid
}

// bids makes a bid of the decision to take what is reserved and no round has given to j: a round
// is asked for. Until it has come a job without a machine waits, for two periods at most; else it
// is decided without what is reserved. Where its guard holds it takes it at once.
func (m *Machine) bids(j *Job, v *plan.Job, d plan.Decision) plan.Decision {
	if len(m.prepaid) == 0 || m.faults.Seizes {
		return d
	}
	kept, _ := j.Kept(m.now())
	late := m.progress(j, d.Speed).Guard(false)
	switch {
	case v.Held == "" && !late && d.Take != kept && m.isLeft(kept, v.Reserved):
		return m.awaitsRound(j, d, m.now().Add(m.roundEvery()))
	case d.Take == v.Held || d.Take == kept || d.Take == j.MigratingTo() || !m.isPrepaid(d.Take):
		if p := lookoutOf(j).bid; p != nil {
			p.since = time.Time{}
		}
		return d
	}
	m.rounds.due = true
	if late {
		return d
	}
	if until := m.bidUntil(j); v.Held == "" && m.now().Before(until) {
		return m.awaitsRound(j, d, until)
	}
	for i := range v.Reserved {
		r := &v.Reserved[i]
		r.Promised = r.Promised || r.Offer != kept && r.Offer != v.Held
	}
	return m.planner.Decide(*v, m.class(j))
}

// isLeft reports whether seats of an offer are still being left by others.
func (m *Machine) isLeft(offer market.OfferID, list []plan.Reservation) bool {
	return offer != "" && slices.ContainsFunc(list, func(r plan.Reservation) bool { return r.Offer == offer && r.InUse })
}

// bidUntil is until when j waits for a round, from its first bid on; a time that is past once one has come that began
// since.
func (m *Machine) bidUntil(j *Job) time.Time {
	p := biddingOf(j)
	if p.since.IsZero() {
		p.since, p.event = m.now(), m.s.Seq()
	}
	if m.rounds.stood >= p.event && !m.rounds.waits {
		return p.since
	}
	return p.since.Add(2 * m.roundEvery())
}

// awaitsRound is the decision to wait for a round.
func (m *Machine) awaitsRound(j *Job, d plan.Decision, until time.Time) plan.Decision {
	d.Take, d.Rate, d.Variant, d.Probe, d.Table, d.Why = "", 0, "", "", nil, plan.NextRound
	d.Retry, d.Unschedulable = time.Time{}, false
	if guard, ok := m.progress(j, d.Speed).GuardAt(false); ok && guard.Before(until) {
		until = guard
	}
	d.Again = until
	return d
}

// isPrepaid reports whether an offer is of reserved machines.
func (m *Machine) isPrepaid(id market.OfferID) bool {
	return slices.ContainsFunc(m.prepaid, func(l *state.Listing) bool { return l.Offer().ID == id })
}

// pins keeps rounds from moving a job whose guard has just chosen its machine, until it has saved there.
func (m *Machine) pins(j *Job) {
	if len(m.prepaid) > 0 && m.progress(j, j.Last().Speed).Guard(false) {
		m.fact(state.JobPinned{Job: j.ID()})
	}
}

// RoundInputs is what a round decides about: the reserved offers with their free seats, the most
// urgent jobs that wait or run elsewhere, and the least urgent that have a seat. It is read
// between two steps and changes nothing that is recorded.
func (m *Machine) RoundInputs() round.Inputs {
	s := round.Inputs{Base: m.s.Seq(), Now: m.now()}
	m.rounds.stood = m.s.Seq()
	for _, l := range m.prepaid {
		if o := l.Offer(); len(s.Pools) < mostPools && m.isOpen(l) {
			free, kept := m.seatsOf(o, nil)
			pool := round.Pool{Offer: o.ID, Free: max(0, free-kept), Until: o.Reserved.Until, Most: l.Quote().Rate}
			s.Pools = append(s.Pools, pool)
		}
	}
	if len(s.Pools) == 0 || m.s.Undecided() {
		return s
	}
	seated, others := m.bidders(s.Pools)
	waiting := m.waiting()
	m.rebids(s.Pools, slices.Concat(others, waiting, seated))
	add := func(list []*Job, most int) {
		var bids []round.Bid
		for _, j := range list {
			if p := lookoutOf(j).bid; p != nil && !p.at.IsZero() && p.epoch == j.Epoch() && len(p.asks) > 0 {
				bids = append(bids, m.bidOf(j, p))
			}
		}
		slices.SortFunc(bids, func(a, b round.Bid) int {
			return cmp.Or(-cmp.Compare(a.Priority, b.Priority), -cmp.Compare(a.Elsewhere, b.Elsewhere),
				byUrgency(m.s.Job(a.Job), m.s.Job(b.Job)))
		})
		s.Bids = append(s.Bids, bids[:min(len(bids), most)]...)
	}
	add(seated, len(seated))
	add(others, len(others))
	add(waiting, max(0, m.cfg().MaxRunning-len(m.s.Running())))
	return s
}

// isOpen reports whether what is reserved can be had now.
func (m *Machine) isOpen(l *state.Listing) bool {
	o := l.Offer()
	return o.Currency == m.cfg().Currency && l.Quote().Available && !m.now().Before(o.Reserved.From) &&
		m.now().Before(o.Reserved.Until)
}

// movable reports whether an attempt's program runs and nothing else becomes of it.
func movable(j *Job, a *Attempt) bool {
	return a != nil && j.State() == Running && j.Asked() == nil && j.Ending() == "" && a.Task() == TaskRunning &&
		!a.Draining() && a.Noticed().IsZero() && !a.Releasing() && !a.Disowned()
}

// bidders are the jobs that have a seat of the pools, the least urgent first, and the others that
// run or have waited for long for an answer, the most urgent first.
func (m *Machine) bidders(pools []round.Pool) (seated, others []*Job) {
	blocks := m.blocks()
	for _, j := range m.s.Running() {
		a, asked := j.Live(), j.Asked()
		switch {
		case asked != nil:
			if !asked.Machine().Prepaid && !m.now().Before(m.looksFurther(j, asked)) && blocks(j).by == nil {
				others = append(others, j)
			}
		case !movable(j, a):
		case !a.Machine().Prepaid:
			if offer, _ := j.Kept(m.now()); offer == "" {
				others = append(others, j)
			}
		case slices.ContainsFunc(pools, func(p round.Pool) bool { return p.Offer == a.Offer() }):
			seated = append(seated, j)
		}
	}
	slices.SortFunc(seated, func(a, b *Job) int { return byUrgency(b, a) })
	slices.SortFunc(others, byUrgency)
	return seated[:min(len(seated), mostBids)], others[:min(len(others), mostBids)]
}

// byUrgency is the order of the queue.
func byUrgency(a, b *Job) int {
	switch {
	case a == b:
		return 0
	case before(a, b):
		return -1
	}
	return 1
}

// waiting are the most urgent jobs of the queue that may begin now; it looks at four times as many.
func (m *Machine) waiting() (list []*Job) {
	if !m.room() {
		return nil
	}
	blocks := m.blocks()
	first, _ := m.urgent(4 * mostBids)
	for _, j := range first {
		if offer, _ := j.Kept(m.now()); offer == "" && blocks(j).by == nil && !m.awaits(j) && len(list) < mostBids {
			list = append(list, j)
		}
	}
	return list
}

// rebids finds out anew what jobs would give, those first of which that is the longest ago.
// Where not all come to it another round follows.
func (m *Machine) rebids(pools []round.Pool, jobs []*Job) {
	slices.SortStableFunc(jobs, func(a, b *Job) int { return biddingOf(a).at.Compare(biddingOf(b).at) })
	weighed := 0
	for _, j := range jobs {
		if weighed >= bidsWeighs {
			m.rounds.due = true
			return
		}
		m.rebid(pools, j)
		weighed += 1 + m.class(j).Weighed()
	}
}

// rebid finds out what j would give for a seat: what an hour elsewhere costs it, by a policy that
// needs no tables, and which pools it would take if each were the only offer.
func (m *Machine) rebid(pools []round.Pool, j *Job) {
	p, class := biddingOf(j), m.class(j)
	v := m.view(j)
	v.Probed, v.Pending = true, ""
	if v.Rule == "" || v.Rule == policy.Default {
		v.Rule = policy.UniformProgress
	}
	own := market.OfferID("")
	a := j.Live()
	if a != nil && a.Machine().Prepaid {
		own, v.Held, v.Warming = a.Offer(), "", 0
	}
	rate, speed := m.planner.Elsewhere(v, class)
	p.at, p.epoch, p.elsewhere, p.asks = m.now(), j.Epoch(), rate, nil
	for i := range pools {
		l := m.s.Listing(pools[i].Offer)
		there, ok := m.planner.Wants(v, class, l.Plan())
		if l.Offer().ID == own {
			there, ok = cmp.Or(max(a.Speed(), 0), 1), true
		}
		if ok {
			saves := scaledRate(rate, there, speed) - l.Offer().Reserved.Marginal
			p.asks = append(p.asks, round.Want{Offer: l.Offer().ID, Rate: max(0, saves)})
		}
	}
}

// scaledRate is what the work of an hour at one speed costs where it is done at another.
func scaledRate(rate money.Rate, there, elsewhere float64) money.Rate {
	if elsewhere <= 0 || there == elsewhere {
		return rate
	}
	return money.Rate(quantity.Int(float64(rate) * (there / elsewhere)))
}

// bidOf is the bid of a job as it stands now.
func (m *Machine) bidOf(j *Job, p *bidding) round.Bid {
	t, now := j.Terms(), m.progress(j, 1)
	b := round.Bid{
		Job: j.ID(), Epoch: j.Epoch(), Nodes: m.nodesOf(j), Priority: t.Priority, Deadline: t.Deadline, Order: j.Order(),
		Pinned: j.Pinned() && !m.faults.Unpins, Rests: j.Rests(), Elsewhere: p.elsewhere, Wants: p.asks,
		Restart: now.Restart, Left: now.Left, Known: now.Known,
	}
	a := j.Live()
	if a == nil || !movable(j, a) {
		return b
	}
	b.On, b.Seated = a.Offer(), a.Machine().Prepaid
	if i := m.s.Instance(a.Instance()); b.Seated && i != nil && len(i.Seats()) > 1 {
		b.Fixed = true // whoever has another part of the machine stays, and so no machine comes free
		return b
	}
	if slack, timed := now.Slack(false); b.Seated && (!j.Pinned() || !m.faults.Unpins) {
		b.Fixed = !now.Known || timed && slack < 3*now.Restart+now.Reserve+now.Detect+now.Margin
	}
	return b
}

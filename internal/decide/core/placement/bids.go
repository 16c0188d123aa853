package placement

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// Bounds of a round: the number of pools, and of jobs of each kind. It recomputes as many bids, the oldest first,
// as a few milliseconds allow.
const (
	mostPools  = 32
	mostBids   = 64
	bidsWeighs = WeighedAtOnce
)

// bidding is a job's last computed bid for seats. It is not part of the state; a restart computes it again.
type bidding struct {
	since     time.Time // since when the job has waited for a round; zero: it does not wait
	event     uint64    // sequence number when the wait began
	at        time.Time // when the fields below were computed; zero: never
	epoch     int       // epoch of the job at that time
	elsewhere money.Rate
	asks      []assign.Want
}

// biddingOf returns the bidding of j.
func biddingOf(j *state.Job) *bidding {
	p := LookoutOf(j)
	if p.bid == nil {
		p.bid = &bidding{}
	}
	return p.bid
}

// bids turns a decision to take a reserved offer that no round gave to j into a bid: it requests a round. A job
// without a machine waits for the round, for two periods at most; any other is decided without the reserved offers.
// If its guard applies, the job takes the offer at once.
func (rs *Bids) bids(j *state.Job, v *plan.Job, d plan.Decision) plan.Decision {
	if len(rs.market.Prepaid) == 0 || rs.Faults.Seizes {
		return d
	}
	kept, _ := j.Kept(rs.Now())
	late := rs.decider.Progress(j, d.Speed).Guard(false)
	if v.Held == "" && !late && d.Take != kept && rs.isLeft(kept, v.Reserved) {
		return rs.awaitsRound(j, d, rs.Now().Add(rs.RoundEvery()))
	}
	given := []market.OfferID{v.Held, kept, j.MigratingTo()}
	if slices.Contains(given, d.Take) || !rs.IsPrepaid(d.Take) {
		endBid(j)
		return d
	}
	rs.Rounds.Due = true
	if late {
		return d
	}
	if until := rs.bidUntil(j); v.Held == "" && rs.Now().Before(until) {
		return rs.awaitsRound(j, d, until)
	}
	for i := range v.Reserved {
		r := &v.Reserved[i]
		r.Promised = r.Promised || r.Offer != kept && r.Offer != v.Held
	}
	return rs.market.Planner.Decide(*v, rs.market.Class(j))
}

// endBid forgets since when a job bids: the next bid waits for a round anew.
func endBid(j *state.Job) {
	if p := LookoutOf(j).bid; p != nil {
		p.since = time.Time{}
	}
}

// isLeft reports whether other jobs are still leaving the seats of an offer.
func (rs *Bids) isLeft(offer market.OfferID, list []plan.Reservation) bool {
	return offer != "" && slices.ContainsFunc(list, func(r plan.Reservation) bool { return r.Offer == offer && r.InUse })
}

// bidUntil is when j stops waiting for a round, counted from its first bid. It is in the past once a round that
// started after the bid has come.
func (rs *Bids) bidUntil(j *state.Job) time.Time {
	p := biddingOf(j)
	if p.since.IsZero() {
		p.since, p.event = rs.Now(), rs.State.Seq()
	}
	if rs.Rounds.stood >= p.event && !rs.Rounds.Waits {
		return p.since
	}
	return p.since.Add(2 * rs.RoundEvery())
}

// awaitsRound returns the decision to wait for a round.
func (rs *Bids) awaitsRound(j *state.Job, d plan.Decision, until time.Time) plan.Decision {
	d.Take, d.Rate, d.Variant, d.Probe, d.Table, d.Why = "", 0, "", "", nil, plan.NextRound
	d.Retry, d.Unschedulable = time.Time{}, false
	if guard, ok := rs.decider.Progress(j, d.Speed).GuardAt(false); ok && guard.Before(until) {
		until = guard
	}
	d.Again = until
	return d
}

// IsPrepaid reports whether an offer is reserved.
func (rs *Bids) IsPrepaid(id market.OfferID) bool {
	return slices.ContainsFunc(rs.market.Prepaid, func(l *state.Listing) bool { return l.Offer().ID == id })
}

// Pins keeps rounds from moving a job whose guard has just chosen its machine, until it has saved there.
func (rs *Bids) Pins(j *state.Job) {
	if len(rs.market.Prepaid) > 0 && rs.decider.Progress(j, j.Last().Speed).Guard(false) {
		rs.Fact(state.JobPinned{Job: j.ID()})
	}
}

// RoundInputs returns the input of a round: the reserved offers with their free seats, the most urgent jobs that
// wait or run elsewhere, and the least urgent jobs with a seat. It runs between two steps and changes no recorded
// state.
func (rs *Bids) RoundInputs() assign.Inputs {
	s := assign.Inputs{Base: rs.State.Seq(), Now: rs.Now()}
	rs.Rounds.stood = rs.State.Seq()
	for _, l := range rs.market.Prepaid {
		if o := l.Offer(); len(s.Pools) < mostPools && rs.isOpen(l) {
			free, kept := rs.market.SeatsOf(o, nil)
			pool := assign.Pool{Offer: o.ID, Free: max(0, free-kept), Until: o.Reserved.Until, Most: l.Quote().Rate}
			s.Pools = append(s.Pools, pool)
		}
	}
	if len(s.Pools) == 0 || rs.State.Undecided() {
		return s
	}
	seated, others := rs.bidders(s.Pools)
	waiting := rs.waiting()
	rs.rebids(s.Pools, slices.Concat(others, waiting, seated))
	add := func(list []*state.Job, most int) {
		var bids []assign.Bid
		for _, j := range list {
			if p := LookoutOf(j).bid; p != nil && !p.at.IsZero() && p.epoch == j.Epoch() && len(p.asks) > 0 {
				bids = append(bids, rs.bidOf(j, p))
			}
		}
		slices.SortFunc(bids, func(a, b assign.Bid) int {
			return cmp.Or(-cmp.Compare(a.Priority, b.Priority), -cmp.Compare(a.Elsewhere, b.Elsewhere),
				byUrgency(rs.State.Job(a.Job), rs.State.Job(b.Job)))
		})
		s.Bids = append(s.Bids, bids[:min(len(bids), most)]...)
	}
	add(seated, len(seated))
	add(others, len(others))
	add(waiting, max(0, rs.Config().MaxRunning-len(rs.State.Running())))
	return s
}

// isOpen reports whether a reserved offer is available now.
func (rs *Bids) isOpen(l *state.Listing) bool {
	o := l.Offer()
	return o.Currency == rs.Config().Currency && l.Quote().Available && !rs.Now().Before(o.Reserved.From) &&
		rs.Now().Before(o.Reserved.Until)
}

// Movable reports whether an attempt's program runs and nothing else is about to happen to it.
func Movable(j *state.Job, a *state.Attempt) bool {
	return a != nil && j.State() == state.Running && j.Asked() == nil && j.Ending() == "" &&
		a.Task() == state.TaskRunning &&
		!a.Draining() && a.Noticed().IsZero() && !a.Releasing() && !a.Disowned()
}

// bidders returns the jobs with a seat in the pools, the least urgent first, and other jobs that run, or have
// waited long for an answer, the most urgent first.
func (rs *Bids) bidders(pools []assign.Pool) (seated, others []*state.Job) {
	blocks := rs.queue.Blocks()
	for _, j := range rs.State.Running() {
		a, asked := j.Live(), j.Asked()
		switch {
		case asked != nil:
			if !asked.Machine().Prepaid && !rs.Now().Before(rs.decider.LooksFurther(j, asked)) && blocks(j).By == nil {
				others = append(others, j)
			}
		case !Movable(j, a):
		case !a.Machine().Prepaid:
			if offer, _ := j.Kept(rs.Now()); offer == "" {
				others = append(others, j)
			}
		case slices.ContainsFunc(pools, func(p assign.Pool) bool { return p.Offer == a.Offer() }):
			seated = append(seated, j)
		}
	}
	slices.SortFunc(seated, func(a, b *state.Job) int { return byUrgency(b, a) })
	slices.SortFunc(others, byUrgency)
	return seated[:min(len(seated), mostBids)], others[:min(len(others), mostBids)]
}

// byUrgency is the order of the queue.
func byUrgency(a, b *state.Job) int {
	switch {
	case a == b:
		return 0
	case queue.Before(a, b):
		return -1
	}
	return 1
}

// waiting returns the most urgent queued jobs that may start now. It checks four times as many.
func (rs *Bids) waiting() (list []*state.Job) {
	if !rs.queue.Room() {
		return nil
	}
	blocks := rs.queue.Blocks()
	first, _ := rs.decider.urgent(4 * mostBids)
	for _, j := range first {
		if _, closed := rs.decider.Closed(j); closed {
			continue
		}
		offer, _ := j.Kept(rs.Now())
		may := blocks(j).By == nil && !rs.queue.Stopped(j) && !rs.decider.Awaits(j)
		if offer == "" && may && len(list) < mostBids {
			list = append(list, j)
		}
	}
	return list
}

// rebids recomputes the bids of jobs, the oldest first. If it does not reach all, another round follows.
func (rs *Bids) rebids(pools []assign.Pool, jobs []*state.Job) {
	slices.SortStableFunc(jobs, func(a, b *state.Job) int { return biddingOf(a).at.Compare(biddingOf(b).at) })
	weighed := 0
	for _, j := range jobs {
		if weighed >= bidsWeighs {
			rs.Rounds.Due = true
			return
		}
		rs.rebid(pools, j)
		weighed += 1 + rs.market.Class(j).Weighed()
	}
}

// rebid recomputes the bid of j: its hourly cost elsewhere, by a policy that needs no tables, and the pools that it
// would take if each were the only offer.
func (rs *Bids) rebid(pools []assign.Pool, j *state.Job) {
	p, class := biddingOf(j), rs.market.Class(j)
	v := rs.decider.View(j)
	v.Probed, v.Pending = true, ""
	if v.Rule == "" || v.Rule == policy.Default {
		v.Rule = policy.UniformProgress
	}
	own := market.OfferID("")
	a := j.Live()
	if a != nil && a.Machine().Prepaid {
		own, v.Held, v.Warming = a.Offer(), "", 0
	}
	rate, speed := rs.market.Planner.Elsewhere(v, class)
	p.at, p.epoch, p.elsewhere, p.asks = rs.Now(), j.Epoch(), rate, nil
	for i := range pools {
		l := rs.State.Listing(pools[i].Offer)
		there, ok := rs.market.Planner.Wants(v, class, l.Plan())
		if l.Offer().ID == own {
			there, ok = cmp.Or(max(a.Speed(), 0), 1), true
		}
		if ok {
			saves := scaledRate(rate, there, speed) - l.Offer().Reserved.Marginal
			p.asks = append(p.asks, assign.Want{Offer: l.Offer().ID, Rate: max(0, saves)})
		}
	}
}

// scaledRate is the cost elsewhere of the work that an hour there does.
func scaledRate(rate money.Rate, there, elsewhere float64) money.Rate {
	if elsewhere <= 0 || there == elsewhere {
		return rate
	}
	return money.Rate(quantity.Int(float64(rate) * (there / elsewhere)))
}

// bidOf returns the current bid of a job.
func (rs *Bids) bidOf(j *state.Job, p *bidding) assign.Bid {
	t, now := j.Terms(), rs.decider.Progress(j, 1)
	b := assign.Bid{
		Job: j.ID(), Epoch: j.Epoch(), Nodes: rs.decider.nodesOf(j), Priority: t.Priority, Deadline: t.Deadline,
		Order:  j.Order(),
		Pinned: j.Pinned() && !rs.Faults.Unpins, Rests: j.Rests(), Elsewhere: p.elsewhere, Wants: p.asks,
		Restart: now.Restart, Left: now.Left, Known: now.Known,
	}
	a := j.Live()
	if a == nil || !Movable(j, a) {
		return b
	}
	b.On, b.Seated = a.Offer(), a.Machine().Prepaid
	if i := rs.State.Instance(a.Instance()); b.Seated && i != nil && len(i.Seats()) > 1 {
		b.Fixed = true // the other tasks on the machine stay, so moving this one frees no machine
		return b
	}
	if t.Unpreemptible && b.Seated {
		b.Fixed = true
		return b
	}
	if slack, timed := now.Slack(false); b.Seated && (!j.Pinned() || !rs.Faults.Unpins) {
		b.Fixed = !now.Known || timed && slack < 3*now.Restart+now.Reserve+now.Detect+now.Margin
	}
	return b
}

// Rounds is the state of the rounds over reserved offers. It is not part of the recorded state; after a restart a
// round is requested again.
type Rounds struct {
	Due   bool         // something that a round depends on has changed
	Asked time.Time    // time of the newest request; zero: none
	Waits bool         // the answer is still pending
	Again time.Time    // when time alone could change the result; zero: never
	stood uint64       // the event after which the newest inputs were taken
	Kept  []*state.Job // jobs that may have reserved seats
}

// RoundEvery is the shortest time between rounds if there are many jobs, 15 seconds on a usual server. The wait for
// a missing round is a multiple of it.
func (rs *Bids) RoundEvery() time.Duration { return max(rs.Config().Detect/2, time.Second) }

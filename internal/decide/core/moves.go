package core

import (
	"slices"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/plan/round"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// rounds is where the rounds over what is reserved stand. It is not part of the state: after a
// restart a round is asked for again.
type rounds struct {
	due   bool      // something changed that a round depends on
	asked time.Time // when the newest was asked for; zero: none was
	waits bool      // it has not come
	again time.Time // when time alone could change what it found; zero: never
	stood uint64    // the event after which the newest standing was taken
	kept  []*Job    // for which seats may be kept
}

// fewJobs are so few that a round among them costs nothing: whoever waits for it need not wait long.
const fewJobs = 32

// roundEvery is how often a round runs at most where there are many jobs, every 15 seconds of a usual server, and
// what one that does not come is waited for is counted in.
func (m *Machine) roundEvery() time.Duration { return max(m.cfg().Detect/2, time.Second) }

// roundPause is how long after a round the next one may run.
func (m *Machine) roundPause() time.Duration {
	if m.queue.Len()+len(m.s.Running()) <= fewJobs {
		return time.Second
	}
	return m.roundEvery()
}

// roundLost is after how many periods a round is asked for again that has not come.
const roundLost = 10

// recallsKept finds the jobs again for which seats are kept, after a restart.
func (m *Machine) recallsKept() {
	m.rounds.due = len(m.prepaid) > 0
	for _, j := range m.s.Jobs() {
		if offer, _ := j.Kept(m.now()); offer != "" {
			m.rounds.kept = append(m.rounds.kept, j)
		}
	}
}

// asksRound asks for a round where something changed that it depends on, at most once a period.
func (m *Machine) asksRound() {
	r := &m.rounds
	if len(m.prepaid) == 0 {
		return
	}
	r.due = r.due || m.movesBids() || !r.again.IsZero() && !m.now().Before(r.again)
	if !r.due || m.now().Before(m.roundAt()) || m.s.Undecided() || !m.hasBidder() {
		return
	}
	r.due, r.asked, r.waits, r.again = false, m.now(), true, time.Time{}
	live := r.kept[:0]
	for _, j := range r.kept {
		if offer, _ := j.Kept(m.now()); offer != "" {
			live = append(live, j)
		}
	}
	clear(r.kept[len(live):])
	r.kept = live
	m.out.Actions = append(m.out.Actions, RunRound{Base: m.s.Seq()})
}

// roundAt is from when on a round may be asked for.
func (m *Machine) roundAt() time.Time {
	switch r := &m.rounds; {
	case r.asked.IsZero():
		return time.Time{}
	case r.waits:
		return r.asked.Add(roundLost * m.roundEvery())
	default:
		return r.asked.Add(m.roundPause())
	}
}

// wakeForRound is when a round is to be asked for; zero: something has to change first.
func (m *Machine) wakeForRound() time.Time {
	r := &m.rounds
	if len(m.prepaid) == 0 || !r.due && r.again.IsZero() || m.s.Undecided() || !m.hasBidder() {
		return time.Time{}
	}
	at := m.roundAt()
	if !r.due {
		at = later(at, r.again)
	}
	return later(at, m.now().Add(time.Nanosecond))
}

// hasBidder reports whether a job may want a seat that has none, or another than it has.
func (m *Machine) hasBidder() bool {
	if m.queue.Len() > 0 || len(m.prepaid) > 1 && len(m.s.Running()) > 0 {
		return true
	}
	for _, j := range m.s.Running() {
		if a := j.Live(); a == nil || !a.Machine().Prepaid {
			return true
		}
	}
	return false
}

// movesBids reports whether the step changed what a round depends on: prices, seats, what runs.
func (m *Machine) movesBids() bool {
	switch m.e.Body.(type) {
	case MarketSeen, Configured, JobUpdated, OwnershipDecided:
		return true
	}
	for _, f := range m.out.Facts {
		switch f.(type) {
		case state.InstanceClosed, state.AllocationClosed, state.TaskStarted:
			return true
		}
	}
	return false
}

// proposed takes the groups of a round: each happens whole, or is dropped where it is stale. Who
// waited for the round is decided about again.
func (m *Machine) proposed(b *RoundProposed) {
	r := &m.rounds
	r.waits, r.again = false, b.Again
	for i := range b.Groups {
		if m.happens(b.Groups[i].Moves) {
			m.out.Moved++
		} else {
			m.out.Stale++
		}
	}
	r.due = r.due || m.out.Moved+m.out.Stale > 0
	m.queue.changed()
}

// placement is a move that may be made now.
type placement struct {
	round.Move
	job *Job
	d   plan.Decision
}

// happens makes all moves of a group, or none where the state is not as it was when the round began.
func (m *Machine) happens(moves []round.Move) bool {
	list := make([]placement, 0, len(moves))
	seats := map[market.OfferID]int{}
	begin := 0
	for i := range moves {
		p, ok := m.placed(&moves[i])
		if !ok || slices.ContainsFunc(list, func(o placement) bool { return o.job == p.job }) {
			return false
		}
		list = append(list, p)
		seats[p.From] += p.Nodes
		seats[p.To] -= p.Nodes
		if p.From == "" && p.job.Asked() == nil {
			begin++
		}
	}
	if begin > 0 && len(m.s.Running())+begin > m.cfg().MaxRunning || begin > 1 && len(m.quotas) > 0 {
		return false // quotas are asked for one job at a time
	}
	for _, l := range m.prepaid {
		free, kept := m.seatsOf(l.Offer(), nil)
		if n := seats[l.Offer().ID]; n < 0 && n+free-kept < 0 && !m.faults.Stale {
			return false
		}
	}
	by := m.now()
	for i := range list {
		by = later(by, m.place(&list[i], by))
	}
	return true
}

// placed holds a move against the state: the job stands as it did when the round began and is
// neither pinned nor rests, the offer costs no more, and the job's own decision, were those the
// only seats, is to go there.
func (m *Machine) placed(v *round.Move) (p placement, ok bool) {
	j := m.s.Job(v.Job)
	if j == nil || len(m.prepaid) == 0 || m.s.Undecided() || !m.standsAs(j, v) || !m.faults.Stale && j.Epoch() != v.Epoch {
		return p, false
	}
	if v.From != "" && (j.Pinned() && !m.faults.Unpins || j.Rests().After(m.now())) {
		return p, false
	}
	if v.To != "" {
		l := m.s.Listing(v.To)
		if l == nil || !m.isPrepaid(v.To) || !l.Quote().Available || l.Quote().Rate > v.Most {
			return p, false
		}
	}
	view := m.view(j)
	view.Pending, view.Probed = "", true
	for _, l := range m.prepaid {
		id := l.Offer().ID
		view.Reserved = append(view.Reserved, plan.Reservation{Offer: id, Promised: id != v.To})
	}
	d := m.planner.Decide(view, m.class(j))
	m.out.Decided++
	m.wantsTable(j, d.Table)
	if _, ends := ends[d.Why]; d.Take != v.To && v.To != "" || ends && v.To == "" || d.Take == v.From && d.Take != "" {
		return p, false
	}
	return placement{*v, j, d}, true
}

// standsAs reports whether a job waits, or runs, as the move says.
func (m *Machine) standsAs(j *Job, v *round.Move) bool {
	_, spent := over(j, m.now())
	if spent || m.awaits(j) {
		return false
	}
	a := j.Live()
	if v.From != "" {
		return movable(j, a) && (m.faults.Stale || a.Offer() == v.From)
	}
	if asked := j.Asked(); asked != nil {
		return !asked.Machine().Prepaid && m.blocks()(j).by == nil
	}
	return j.State() == Queued && at(j).waits && m.room() && m.blocks()(j).by == nil
}

// place makes a move. by is when the seats are free for which others leave theirs, or now. It
// returns when the job has left its own.
func (m *Machine) place(p *placement, by time.Time) (left time.Time) {
	j, a := p.job, p.job.Live()
	m.decided(j, p.d)
	f := state.JobPlaced{Job: j.ID(), Offer: p.To, Nodes: p.Nodes}
	if p.From != "" {
		f.Rests = m.now().Add(p.Rests)
		left = m.now().Add(j.Terms().Grace + 2*m.cfg().Patience + 2*m.timingOf(a.Machine()).Detect)
	}
	seats := true
	if l := m.s.Listing(p.To); p.To != "" {
		free, kept := m.seatsOf(l.Offer(), j)
		seats = free-kept >= p.Nodes || m.faults.Stale
		f.By = later(by, left)
		m.rounds.kept = append(m.rounds.kept, j)
	}
	m.fact(f)
	why := "move_" + string(p.d.Why)
	switch asked := j.Asked(); {
	case !seats:
		m.wakeAt(j, f.By)
	case p.From != "":
		m.drain(j, a, why, "", p.d.Take)
	case asked != nil:
		m.backOff(asked, state.OfferScope, 0, unansweredYet)
		m.giveUp(asked, why)
		m.request(j, p.d)
	default:
		m.queue.remove(j)
		m.request(j, p.d)
	}
	return left
}

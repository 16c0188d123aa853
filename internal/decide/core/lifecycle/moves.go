package lifecycle

import (
	"slices"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// fewJobs is a number of jobs so small that a round costs nothing and may follow soon.
const fewJobs = 32

// roundPause is how long after a round the next one may run.
func (mv *Mover) roundPause() time.Duration {
	if mv.queue.Queue.Len()+len(mv.State.Running()) <= fewJobs {
		return time.Second
	}
	return mv.bids.RoundEvery()
}

// RoundLost is the number of periods after which an unanswered round is requested again.
const RoundLost = 10

// RecallsKept restores the list of jobs with reserved seats after a restart.
func (mv *Mover) RecallsKept() {
	mv.bids.Rounds.Due = len(mv.market.Prepaid) > 0
	for _, j := range mv.State.Jobs() {
		if offer, _ := j.Kept(mv.Now()); offer != "" {
			mv.bids.Rounds.Kept = append(mv.bids.Rounds.Kept, j)
		}
	}
}

// AsksRound requests a round if something that it depends on has changed, at most once a period.
func (mv *Mover) AsksRound() {
	r := &mv.bids.Rounds
	if len(mv.market.Prepaid) == 0 {
		return
	}
	r.Due = r.Due || mv.movesBids() || !r.Again.IsZero() && !mv.Now().Before(r.Again)
	if !r.Due || mv.Now().Before(mv.roundAt()) || mv.State.Undecided() || !mv.hasBidder() {
		return
	}
	r.Due, r.Asked, r.Waits, r.Again = false, mv.Now(), true, time.Time{}
	live := r.Kept[:0]
	for _, j := range r.Kept {
		if offer, _ := j.Kept(mv.Now()); offer != "" {
			live = append(live, j)
		}
	}
	clear(r.Kept[len(live):])
	r.Kept = live
	mv.Out.Actions = append(mv.Out.Actions, step.RunRound{Base: mv.State.Seq()})
}

// roundAt is the earliest time for the next round.
func (mv *Mover) roundAt() time.Time {
	switch r := &mv.bids.Rounds; {
	case r.Asked.IsZero():
		return time.Time{}
	case r.Waits:
		return r.Asked.Add(RoundLost * mv.bids.RoundEvery())
	default:
		return r.Asked.Add(mv.roundPause())
	}
}

// WakeForRound is when a round must be requested; zero: something has to change first.
func (mv *Mover) WakeForRound() time.Time {
	r := &mv.bids.Rounds
	if len(mv.market.Prepaid) == 0 || !r.Due && r.Again.IsZero() || mv.State.Undecided() || !mv.hasBidder() {
		return time.Time{}
	}
	at := mv.roundAt()
	if !r.Due {
		at = step.Later(at, r.Again)
	}
	return step.Later(at, mv.Now().Add(time.Nanosecond))
}

// hasBidder reports whether a job without a seat, or with another seat, may want one.
func (mv *Mover) hasBidder() bool {
	if mv.queue.Queue.Len() > 0 || len(mv.market.Prepaid) > 1 && len(mv.State.Running()) > 0 {
		return true
	}
	for _, j := range mv.State.Running() {
		if a := j.Live(); a == nil || !a.Machine().Prepaid {
			return true
		}
	}
	return false
}

// movesBids reports whether the step changed an input of a round: prices, seats or running jobs.
func (mv *Mover) movesBids() bool {
	switch mv.Event.Body.(type) {
	case state.MarketSeen, state.Configured, state.JobUpdated, state.OwnershipDecided:
		return true
	}
	for _, f := range mv.Out.Facts {
		switch f.(type) {
		case state.InstanceClosed, state.AllocationClosed, state.TaskStarted:
			return true
		}
	}
	return false
}

// Proposed handles the groups of a round: each is applied as a whole, or dropped if it is stale. Jobs that waited
// for the round are decided again.
func (mv *Mover) Proposed(b *state.RoundProposed) {
	r := &mv.bids.Rounds
	r.Waits, r.Again = false, b.Again
	for i := range b.Groups {
		if mv.happens(b.Groups[i].Moves) {
			mv.Out.Moved++
		} else {
			mv.Out.Stale++
		}
	}
	r.Due = r.Due || mv.Out.Moved+mv.Out.Stale > 0
	mv.queue.Queue.Changed()
}

// possible is a move that may be made now.
type possible struct {
	assign.Move
	job *state.Job
	d   plan.Decision
}

// happens makes all moves of a group, or none if the state has changed since the round began.
func (mv *Mover) happens(moves []assign.Move) bool {
	list := make([]possible, 0, len(moves))
	seats := map[market.OfferID]int{}
	begin := 0
	for i := range moves {
		p, ok := mv.placed(&moves[i])
		if !ok || slices.ContainsFunc(list, func(o possible) bool { return o.job == p.job }) {
			return false
		}
		list = append(list, p)
		seats[p.From] += p.Nodes
		seats[p.To] -= p.Nodes
		if p.From == "" && p.job.Asked() == nil {
			begin++
		}
	}
	if begin > 0 && len(mv.State.Running())+begin > mv.Config().MaxRunning || begin > 1 && len(mv.queue.Quotas) > 0 {
		return false // quotas are checked one job at a time
	}
	for _, l := range mv.market.Prepaid {
		free, kept := mv.market.SeatsOf(l.Offer(), nil)
		if n := seats[l.Offer().ID]; n < 0 && n+free-kept < 0 && !mv.Faults.Stale {
			return false
		}
	}
	by := mv.Now()
	for i := range list {
		by = step.Later(by, mv.place(&list[i], by))
	}
	return true
}

// placed checks a move against the state: the job is as it was when the round began and is neither pinned nor
// resting, the offer costs no more, and the job itself would decide to go there if those were the only seats.
func (mv *Mover) placed(v *assign.Move) (p possible, ok bool) {
	j := mv.State.Job(v.Job)
	if j == nil || len(mv.market.Prepaid) == 0 || mv.State.Undecided() || !mv.standsAs(j, v) ||
		!mv.Faults.Stale && j.Epoch() != v.Epoch {
		return p, false
	}
	if v.From != "" && (j.Pinned() && !mv.Faults.Unpins || j.Rests().After(mv.Now())) || v.To != "" && !mv.sells(v) {
		return p, false
	}
	d := mv.decideFor(j, v.To)
	return possible{*v, j, d}, agrees(&d, v)
}

// agrees reports whether a decision of a job is the move that a round gives it.
func agrees(d *plan.Decision, v *assign.Move) bool {
	if d.Take != "" && d.Take == v.From {
		return false
	}
	if v.To != "" {
		return d.Take == v.To
	}
	_, ends := d.Why.Stop()
	return !ends
}

// sells reports whether the offer that a move goes to still has a machine, at no higher price than the round saw.
func (mv *Mover) sells(v *assign.Move) bool {
	l := mv.State.Listing(v.To)
	return l != nil && mv.bids.IsPrepaid(v.To) && l.Quote().Available && l.Quote().Rate <= v.Most
}

// decideFor is the job's own decision if the offer had the only reserved seats.
func (mv *Mover) decideFor(j *state.Job, offer market.OfferID) plan.Decision {
	view := mv.decider.View(j)
	view.Pending, view.Probed = "", true
	for _, l := range mv.market.Prepaid {
		id := l.Offer().ID
		view.Reserved = append(view.Reserved, plan.Reservation{Offer: id, Promised: id != offer})
	}
	d := mv.market.Planner.Decide(view, mv.market.Class(j))
	mv.Out.Decided++
	mv.market.WantsTable(j, d.Table)
	return d
}

// standsAs reports whether a job waits, or runs, as the move says.
func (mv *Mover) standsAs(j *state.Job, v *assign.Move) bool {
	_, spent := admission.TimeLimitReached(j, mv.Now())
	if spent || mv.decider.Awaits(j) {
		return false
	}
	a := j.Live()
	if v.From != "" {
		return placement.Movable(j, a) && (mv.Faults.Stale || a.Offer() == v.From)
	}
	if asked := j.Asked(); asked != nil {
		return !asked.Machine().Prepaid && mv.queue.Blocks()(j).By == nil
	}
	return j.State() == state.Queued && queue.At(j).Waits && mv.queue.Room() && mv.queue.Blocks()(j).By == nil
}

// place makes a move. by is when the seats that others leave for it are free, or now. It returns when the job has
// left its own seat.
func (mv *Mover) place(p *possible, by time.Time) (left time.Time) {
	j, a := p.job, p.job.Live()
	mv.decider.Decided(j, p.d)
	f := state.JobPlaced{Job: j.ID(), Offer: p.To, Nodes: p.Nodes}
	if p.From != "" {
		f.Rests = mv.Now().Add(p.Rests)
		left = mv.Now().Add(j.Terms().Grace + 2*mv.Config().Patience + 2*mv.market.TimingOf(a.Machine()).Detect)
	}
	seats := true
	if l := mv.State.Listing(p.To); p.To != "" {
		free, kept := mv.market.SeatsOf(l.Offer(), j)
		seats = free-kept >= p.Nodes || mv.Faults.Stale
		f.By = step.Later(by, left)
		mv.bids.Rounds.Kept = append(mv.bids.Rounds.Kept, j)
	}
	mv.Fact(f)
	why := "move_" + string(p.d.Why)
	switch asked := j.Asked(); {
	case !seats:
		mv.WakeAt(j, f.By)
	case p.From != "":
		mv.jobs.Drain(j, a, why, "", p.d.Take)
	case asked != nil:
		mv.launches.backOff(asked, state.OfferScope, 0, unansweredYet)
		mv.launches.giveUp(asked, why)
		mv.launches.request(j, p.d)
	default:
		mv.queue.Queue.Remove(j)
		mv.launches.request(j, p.d)
	}
	return left
}

// SeatsFreed lets jobs continue if the reserved machine that was kept for them is free now. It returns the offers of
// the freed machines.
func (mv *Mover) SeatsFreed() []market.OfferID {
	freed := mv.instances.freed
	if len(freed) == 0 {
		return nil
	}
	mv.instances.freed = nil
	for _, j := range slices.Clone(mv.bids.Rounds.Kept) {
		if offer, _ := j.Kept(mv.Now()); offer != "" && j.State() == state.Running {
			mv.attempts.reviewJob(j)
		}
	}
	return freed
}

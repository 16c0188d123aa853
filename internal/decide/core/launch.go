package core

import (
	"cmp"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// ends are the decisions that end a job which holds no machine.
var ends = map[plan.Reason]policy.Stop{
	plan.BudgetGone: policy.BudgetSpent, plan.OutOfMoney: policy.BudgetShort,
	plan.TimeGone: policy.WallClock, plan.HoursGone: policy.GPUHoursSpent,
}

// try decides about a job that holds no machine and asks for what was taken.
func (m *Machine) try(j *Job) {
	m.works(j)
	timesOf(j).wake = time.Time{} // every try says anew when the next one is due
	d, warm := m.reuse(j)
	if warm {
		m.decided(j, d)
	} else {
		d = m.decide(j)
	}
	if planted && d.Why == plan.Cheapest {
		d.Take = "" // never launches what is cheapest
	}
	switch {
	case d.Probe != "":
		m.queue.tried(j)
		m.probe(j, d.Probe)
	case d.Take == "":
		m.waits(j, d)
	case j.Terms().Most() > 1 && m.gathers(d.Take):
		m.queue.tried(j) // until the other has its machines, or gives them back
		m.overAt(j)
	case m.keeping == j && len(m.kept(j, d.Take, d.Variant, 1)) == 0:
		m.queue.add(j) // it keeps nothing, and so has its turn like any other
	default:
		m.request(j, d)
	}
}

// waits leaves a job in the queue, or ends it where nothing can ever be taken.
func (m *Machine) waits(j *Job, d plan.Decision) {
	if why, ok := ends[d.Why]; ok {
		m.finish(j, Stopped, string(why), cmp.Or(missing(d, j.Terms().Currency), m.broke(j, d), j.Detail()))
		return
	}
	retry := m.s.Retry(d.Retry)
	m.queue.failed(j, d.Unschedulable, retry)
	m.wakeAt(j, d.Again)
	m.wakeAt(j, retry)
	m.overAt(j)
	m.rungAt(j)
}

// request asks for the machine that was decided on.
func (m *Machine) request(j *Job, d plan.Decision) {
	l := m.s.Listing(d.Take)
	t := j.Terms()
	f := state.AllocationRequested{
		Job: j.ID(), Why: string(d.Why), Nodes: m.enough(j), Machine: state.MachineOf(l.Offer()), Rate: d.Rate,
		Most:    mostRate(t.Need.MaxRate, d.Rate),
		Variant: d.Variant, Rung: t.Need.RungOf(*l.Offer(), l.Quote().Rate, d.Variant) + 1,
	}
	f.Machine.Image = imageOf(j, d.Variant)
	if d.Variant != "" {
		f.Machine.Speed = cmp.Or(max(f.Machine.Speed, 0), 1) * t.Need.Faster(d.Variant)
	}
	f.Keeps = m.kept(j, d.Take, d.Variant, t.Most())
	f.Nodes = max(f.Nodes, len(f.Keeps))
	if s := shareOf(t, f.Nodes); s != 1 {
		f.Machine.Speed = cmp.Or(max(f.Machine.Speed, 0), 1) * s
	}
	if home := j.CheckpointRegion(); home != "" && home != f.Machine.Region {
		f.Transfer = t.Transfer
	}
	m.queue.leave(j)
	m.classOf(j)
	f.Instance = d.Instance
	i := m.s.Instance(d.Instance)
	if t.Most() == 1 {
		f.Portion, _ = m.part(j, l.Offer(), d.Variant, i)
	}
	m.fact(f)
	m.pins(j)
	m.holdsAgain(j)
	if i != nil {
		m.seat(j, i)
		return
	}
	m.wakeAt(j, m.looksFurther(j, j.Asked()))
	m.overAt(j) // it may wait for longer than it has
}

// holdsAgain is said where what jobs hold has changed.
func (m *Machine) holdsAgain(*Job) { m.sums = nil }

// unanswered launches are waited for so long, where the engine does not state longer.
const grantPatience = 10 * time.Minute

// patience is how long an answer to a launch is waited for before the job looks further.
func (m *Machine) patience(a *Allocation) time.Duration {
	t := m.timingOf(a.Machine())
	return max(t.GrantWait, t.Detect, grantPatience)
}

// looksFurther is when a job that waits for an allocation reviews it: after patience, or,
// where it waits for spot, when its guard holds.
func (m *Machine) looksFurther(j *Job, a *Allocation) time.Time {
	at := a.Requested().Add(m.patience(a))
	if end := m.gangEnd(a); !end.IsZero() {
		return end
	}
	if a.Machine().Capacity != market.Spot {
		return at
	}
	if guard, ok := m.progress(j, j.Last().Speed).GuardAt(false); ok && guard.Before(at) {
		at = guard
	}
	return at
}

// launched takes the answer to a launch, whether it came from the launch itself
// or from the provider's inventory.
func (m *Machine) launched(r Rented) {
	a := m.s.Allocation(r.Launch)
	if a == nil {
		if _, closed := m.closed(r); !closed && !m.isOf(r) {
			m.stray(r)
		}
		return
	}
	if a.Has(r.Instance) { // an answer that comes again
		return
	}
	if m.s.Instance(r.Instance) != nil { // a provider that gives one machine twice
		m.refused(LaunchRefused{Launch: r.Launch, Reason: "error"})
		return
	}
	tried := m.s.Trying(a)
	m.fact(state.AllocationGranted{Allocation: a.ID(), Instance: r.Instance})
	if tried || a.Nodes() > 1 && a.Answered() { // whoever waited for that may try too
		m.queue.changed()
	}
	if a.Full() {
		m.began(a)
		return
	}
	if a.Phase() == state.Cancelling && a.Answered() {
		m.unanswered(a, state.CancelDone, state.JobQueued{})
		return
	}
	j := m.s.Job(a.Job())
	m.holdsAgain(j)
	m.wakeAt(j, m.gangEnd(a))
	m.wakeAt(j, m.now()) // its budget is looked after
}

// isOf reports whether r is a machine of the attempt that its launch led to.
func (m *Machine) isOf(r Rented) bool {
	a := m.s.Attempt(r.Launch)
	return a != nil && (a.Nodes() == 1 && a.Partial() == 0 || a.On(r.Instance) != nil)
}

// began begins the attempt of an allocation that is complete.
func (m *Machine) began(a *Allocation) {
	j, cancelled := m.s.Job(a.Job()), a.Phase() == state.Cancelling
	adopts := cancelled && j.Asked() == nil && j.State() == Queued && j.Live() == nil &&
		(j.Attempt() == nil || j.Attempt().Epoch() < a.Epoch())
	m.fact(state.AttemptBegan{Attempt: a.ID(), Adopted: adopts})
	m.holdsAgain(j)
	t := m.s.Attempt(a.ID())
	m.postsAt(j)
	m.cutDead(j, t)
	switch {
	case j.State().Over():
		m.release(t, j.Why(), "")
		return
	case cancelled && !adopts:
		m.release(t, "granted_late", "unused")
		return
	}
	m.queue.remove(j)
	m.queue.leave(j)
	if t.Portion() != nil { // what it has no part of counts in no quota
		m.freed()
	}
	timesOf(j).wake = time.Time{} // nobody waits for an answer any more
	m.wakeAt(j, m.bootLimit(t))
	if at, limited := m.brokeAt(j); limited {
		m.wakeAt(j, at)
	}
}

// pending takes that the provider has the request in its queue, and what it says of the wait. The job goes on looking.
func (m *Machine) pending(b LaunchPending) {
	a := m.s.Allocation(b.Launch)
	if a == nil || !a.Queued().IsZero() && a.Detail() == b.Detail {
		return
	}
	first := a.Queued().IsZero()
	m.fact(state.AllocationQueued{Allocation: b.Launch, Detail: b.Detail})
	if first {
		m.wakeAt(m.s.Job(a.Job()), m.now())
	}
}

// refused leaves what refused alone for a while, and lets the job try again.
func (m *Machine) refused(b LaunchRefused) {
	a := m.s.Allocation(b.Launch)
	if a == nil {
		return
	}
	j := m.s.Job(a.Job())
	if b.Reason == "image" { // which the job names: others that ask for the offer are none the worse
		if key := state.ScopeKey(state.OfferScope, a.Machine()); m.s.Backoff(key).Trial == a.ID() {
			m.fact(state.BackedOff{Scope: key}) // it can be had
		}
		m.unanswered(a, state.Refused, state.JobQueued{Why: "image_refused", Detail: b.Detail, Failed: true})
		return
	}
	m.backOff(a, b.Scope, b.Wait, b.Detail)
	if m.failed(j, a.Rung()); m.reduces(j, a) {
		return
	}
	m.unanswered(a, state.Refused, state.JobQueued{Why: "launch_refused", Detail: b.Detail})
}

// expired takes that the provider gave the request up.
func (m *Machine) expired(launch string) {
	if a := m.s.Allocation(launch); a != nil {
		m.backOff(a, state.OfferScope, 0, "the provider gave a request up")
		if !m.reduces(m.s.Job(a.Job()), a) {
			m.unanswered(a, state.Expired, state.JobQueued{Why: "allocation_expired"})
		}
	}
}

// cancelled takes that the provider gave the request up because we asked.
func (m *Machine) cancelled(launch string) {
	a := m.s.Allocation(launch)
	switch {
	case a == nil:
	case a.Phase() == state.Cancelling:
		m.unanswered(a, state.CancelDone, state.JobQueued{})
	default:
		m.unanswered(a, state.Expired, state.JobQueued{Why: "allocation_expired"})
	}
}

// unanswered closes an allocation that leads to nothing. The job that waited for it
// tries again.
func (m *Machine) unanswered(a *Allocation, as state.AllocationPhase, again state.JobQueued) {
	j := m.s.Job(a.Job())
	asked := j.Asked() == a
	m.dropsAwaited(j, a)
	if len(a.Granted()) > 0 {
		m.partial(j, a)
	} else {
		m.fact(state.AllocationClosed{Allocation: a.ID(), Phase: as})
	}
	m.holdsAgain(j)
	m.queue.changed()
	if asked {
		timesOf(j).wake = time.Time{} // nobody waits for an answer any more
	}
	if !asked || j.State().Over() {
		return
	}
	if again.Failed && j.Failures() >= 2 {
		m.finish(j, Failed, again.Why, again.Detail)
		return
	}
	m.requeue(j, again)
	if l := m.s.Listing(a.Offer()); l != nil {
		if until, cools := m.s.Cooling(l); cools {
			m.wakeAt(j, until)
		}
	}
}

// unansweredYet is what is said of an offer whose request was given up for another one.
const unansweredYet = "a request had no answer in time"

// most is by how many doublings a back-off grows.
const mostDoublings = 6

// backOff leaves a scope alone after a refusal: for CoolOff, doubled with each refusal in
// a row up to 64 times, or for as long as the provider says where that is longer. When it
// is over one launch tries, and others wait for its answer.
//
// Refusals of launches that were under way when another was refused are the same
// refusal, and double nothing.
func (m *Machine) backOff(a *Allocation, scope state.Scope, wait time.Duration, detail string) {
	key := state.ScopeKey(scope, a.Machine())
	b := m.s.Backoff(key)
	if b.Tries == 0 || b.Trial == a.ID() {
		b.Tries++
	}
	until := m.now().Add(max(m.cfg().CoolOff<<min(b.Tries-1, mostDoublings), wait))
	if until.Before(b.Until) {
		until = b.Until
	}
	m.fact(state.BackedOff{Scope: key, Tries: b.Tries, Until: until, Detail: detail})
}

// coolOff leaves an offer alone until a time, where it is not left for longer already, for that reason.
func (m *Machine) coolOff(on *state.Machine, until time.Time, detail string) {
	key := state.ScopeKey(state.OfferScope, on)
	if b := m.s.Backoff(key); b.Until.Before(until) {
		m.fact(state.BackedOff{Scope: key, Tries: b.Tries, Until: until, Detail: detail})
	}
}

// reviewAsked looks whether a job that waits for an answer should look further: when the
// provider takes too long and something else can be had, or the deadline asks for a
// machine that is not interrupted: other spot is no surer than what is pending. An
// offer that is left unanswered backs off as one that refuses, so that a job does not
// go to and fro between offers that are slow. Where a quota has been lowered since and has no
// room for it, nothing else is asked for: what was asked for may still come.
func (m *Machine) reviewAsked(j *Job, a *Allocation) {
	timesOf(j).wake = time.Time{}
	if why, spent := over(j, m.now()); spent {
		m.giveUp(a, string(why))
		m.requeue(j, state.JobQueued{Why: string(why)})
		return
	}
	m.overAt(j)
	if m.reviewGang(j, a) {
		return
	}
	if when := m.looksFurther(j, a); m.now().Before(when) {
		m.wakeAt(j, when)
		return
	}
	end := a.Requested().Add(m.patience(a))
	switch d := m.weighs(j); {
	case d.Probe != "":
		m.decided(j, d)
		m.probe(j, d.Probe)
	case d.Take == "" || d.Take == a.Offer() || m.now().Before(end) && m.isSpotOffer(d.Take) || m.blocks()(j).by != nil:
		m.wakeAt(j, d.Again)
		if !m.now().Before(end) {
			end = m.now().Add(m.patience(a))
		}
		m.wakeAt(j, end)
		m.rungAt(j)
	default:
		m.decided(j, d)
		m.backOff(a, state.OfferScope, 0, unansweredYet)
		m.giveUp(a, "move_"+string(d.Why))
		m.request(j, d)
	}
}

// giveUp cancels an allocation that is not answered.
func (m *Machine) giveUp(a *Allocation, why string) {
	m.fact(state.AllocationCancelling{Allocation: a.ID(), Why: why})
	m.holdsAgain(nil)
}

// overAt wakes a job that waits when its wall clock runs out.
func (m *Machine) overAt(j *Job) {
	if w := j.Terms().WallClock; w > 0 && !j.Began().IsZero() {
		m.wakeAt(j, j.Began().Add(w))
	}
}

// rate is the price of an hour of what the allocation asks for, as it is quoted now.
func (m *Machine) rateOf(a *Allocation) money.Rate {
	if l := m.s.Listing(a.Offer()); l != nil {
		return l.Quote().Rate
	}
	return a.Rate()
}

// isSpotOffer reports whether the machines of an offer may be interrupted.
func (m *Machine) isSpotOffer(id market.OfferID) bool {
	l := m.s.Listing(id)
	return l != nil && l.Offer().Capacity == market.Spot
}

// isSpot reports whether the attempt's machine may be interrupted.
func isSpot(a *Attempt) bool { return a.Capacity() == market.Spot }

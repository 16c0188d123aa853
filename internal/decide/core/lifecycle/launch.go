package lifecycle

import (
	"cmp"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
)

// try decides about a job that holds no machine, and requests the chosen offer.
func (ls *Launches) try(j *state.Job) {
	ls.Works(j)
	step.TimesOf(j).Wake = time.Time{} // each try sets the next wake time again
	d, warm := ls.decider.Reuse(j)
	if warm {
		ls.decider.Decided(j, d)
	} else {
		d = ls.decider.Decide(j)
	}
	if planted && d.Why == plan.Cheapest {
		d.Take = "" // the planted fault: never launch the cheapest
	}
	switch {
	case d.Probe != "":
		ls.queue.Queue.Tried(j)
		ls.attempts.probe(j, d.Probe)
	case d.Take == "":
		ls.waits(j, d)
	case j.Terms().Most() > 1 && ls.attempts.gathers(d.Take):
		ls.queue.Queue.Tried(j) // until the other gang has its machines, or gives them up
		ls.OverAt(j)
	case ls.queue.Keeping == j && len(ls.decider.Kept(j, d.Take, d.Variant, 1)) == 0:
		ls.queue.Queue.Add(j) // it keeps no machine, so it takes its turn like any other
	default:
		ls.request(j, d)
	}
}

// waits leaves a job in the queue, or ends it if no offer can ever be taken.
func (ls *Launches) waits(j *state.Job, d plan.Decision) {
	if why, ok := d.Why.Stop(); ok {
		ls.jobs.Finish(j, state.Stopped, string(why),
			cmp.Or(admission.Missing(d, j.Terms().Currency), ls.admission.Broke(j, d), j.Detail()))
		return
	}
	retry := ls.State.Retry(d.Retry)
	ls.queue.Queue.Failed(j, d.Unschedulable, retry)
	ls.WakeAt(j, d.Again)
	ls.WakeAt(j, retry)
	ls.OverAt(j)
	ls.decider.RungAt(j)
}

// request requests the machine of a decision.
func (ls *Launches) request(j *state.Job, d plan.Decision) {
	l := ls.State.Listing(d.Take)
	t := j.Terms()
	f := state.AllocationRequested{
		Job: j.ID(), Why: string(d.Why), Nodes: ls.decider.Enough(j), Machine: state.MachineOf(l.Offer()), Rate: d.Rate,
		Most:    admission.MostRate(t.Need.MaxRate, d.Rate),
		Variant: d.Variant, Rung: t.Need.RungOf(*l.Offer(), l.Quote().Rate, d.Variant) + 1,
	}
	f.Machine.Image = placement.ImageOf(j, d.Variant)
	f.Keeps = ls.decider.Kept(j, d.Take, d.Variant, t.Most())
	f.Nodes = max(f.Nodes, len(f.Keeps))
	f.Instance = d.Instance
	i := ls.State.Instance(d.Instance)
	if t.Most() == 1 {
		f.Portion, _ = ls.decider.Part(j, l.Offer(), d.Variant, i)
	}
	f.Machine.Speed = ls.decider.SpeedWith(j, l.Offer(), d.Variant, f.Portion)
	if s := plan.ShareOf(f.Nodes, t.Most()); s != 1 {
		f.Machine.Speed = cmp.Or(max(f.Machine.Speed, 0), 1) * s
	}
	if home := j.CheckpointRegion(); home != "" && home != f.Machine.Region {
		f.Transfer = t.Transfer
	}
	ls.queue.Queue.Leave(j)
	ls.queue.ClassOf(j)
	if len(j.Claims(ls.Now())) > 0 {
		ls.queue.Queue.Changed() // the jobs that it preempted wait for nobody from now on
	}
	ls.Fact(f)
	ls.instances.KeepsEnded()
	ls.bids.Pins(j)
	ls.holdsAgain(j)
	ls.decider.ClosesAt(j)
	if i != nil {
		ls.instances.seat(j, i)
		ls.jobs.Watcher.Uses(j)
		return
	}
	ls.WakeAt(j, ls.decider.LooksFurther(j, j.Asked()))
	ls.OverAt(j) // it may wait longer than its wall-clock limit
}

// holdsAgain must be called after the holdings of jobs have changed.
func (ls *Launches) holdsAgain(*state.Job) { ls.queue.Sums = nil }

// Launched handles the grant of a launch, whether from the launch itself or from the provider's inventory.
func (ls *Launches) Launched(r state.Rented) {
	a := ls.State.Allocation(r.Launch)
	if a == nil {
		if _, closed := ls.instances.closed(r); !closed && !ls.isOf(r) {
			ls.instances.stray(r)
		}
		return
	}
	if a.Has(r.Instance) { // a repeated answer
		return
	}
	if ls.State.Instance(r.Instance) != nil { // the provider granted one machine twice
		ls.Refused(state.LaunchRefused{Launch: r.Launch, Reason: "error"})
		return
	}
	tried := ls.State.Trying(a)
	ls.Fact(state.AllocationGranted{Allocation: a.ID(), Instance: r.Instance})
	if tried || a.Nodes() > 1 && a.Answered() { // jobs that waited for the answer may try too
		ls.queue.Queue.Changed()
	}
	if a.Full() {
		ls.began(a)
		return
	}
	if a.Phase() == state.Cancelling && a.Answered() {
		ls.unanswered(a, state.CancelDone, state.JobQueued{})
		return
	}
	j := ls.State.Job(a.Job())
	ls.holdsAgain(j)
	ls.WakeAt(j, ls.decider.GangEnd(a))
	ls.WakeAt(j, ls.Now()) // to check its budget
}

// isOf reports whether r is a machine of the attempt that its launch led to.
func (ls *Launches) isOf(r state.Rented) bool {
	a := ls.State.Attempt(r.Launch)
	return a != nil && (a.Nodes() == 1 && a.Partial() == 0 || a.On(r.Instance) != nil)
}

// began starts the attempt of a complete allocation.
func (ls *Launches) began(a *state.Allocation) {
	j, cancelled := ls.State.Job(a.Job()), a.Phase() == state.Cancelling
	adopts := cancelled && j.Asked() == nil && j.State() == state.Queued && j.Live() == nil &&
		(j.Attempt() == nil || j.Attempt().Epoch() < a.Epoch())
	ls.Fact(state.AttemptBegan{Attempt: a.ID(), Adopted: adopts})
	ls.holdsAgain(j)
	t := ls.State.Attempt(a.ID())
	ls.books.PostsAt(j)
	ls.attempts.cutDead(j, t)
	switch {
	case j.State().Over():
		ls.jobs.release(t, j.Why(), "")
		return
	case cancelled && !adopts:
		ls.jobs.release(t, "granted_late", "unused")
		return
	}
	ls.queue.Queue.Remove(j)
	ls.queue.Queue.Leave(j)
	if t.Portion() != nil { // the rest of the machine no longer counts against quotas
		ls.jobs.Freed()
	}
	ls.jobs.Watcher.Uses(j)
	step.TimesOf(j).Wake = time.Time{} // no answer is pending any more
	ls.WakeAt(j, ls.attempts.bootLimit(t))
	ls.decider.ClosesAt(j)
	if at, limited := ls.admission.BrokeAt(j); limited {
		ls.WakeAt(j, at)
	}
}

// Pending records that the provider has queued the request, and its message about the wait. The job keeps looking
// for other offers.
func (ls *Launches) Pending(b state.LaunchPending) {
	a := ls.State.Allocation(b.Launch)
	if a == nil || !a.Queued().IsZero() && a.Detail() == b.Detail {
		return
	}
	first := a.Queued().IsZero()
	ls.Fact(state.AllocationQueued{Allocation: b.Launch, Detail: b.Detail})
	if first {
		ls.WakeAt(ls.State.Job(a.Job()), ls.Now())
	}
}

// Refused backs off from what refused, and lets the job try again.
func (ls *Launches) Refused(b state.LaunchRefused) {
	a := ls.State.Allocation(b.Launch)
	if a == nil {
		return
	}
	j := ls.State.Job(a.Job())
	if b.Reason == "image" { // the job names the image, so other jobs may still use the offer
		if key := state.ScopeKey(state.OfferScope, a.Machine()); ls.State.Backoff(key).Trial == a.ID() {
			ls.Fact(state.BackedOff{Scope: key}) // the offer itself is available
		}
		ls.unanswered(a, state.Refused, state.JobQueued{Why: "image_refused", Detail: b.Detail, Failed: true})
		return
	}
	ls.backOff(a, b.Scope, b.Wait, b.Detail)
	if ls.decider.Failed(j, a.Rung()); ls.attempts.reduces(j, a) {
		return
	}
	ls.unanswered(a, state.Refused, state.JobQueued{Why: "launch_refused", Detail: b.Detail})
}

// Expired handles a request that the provider dropped.
func (ls *Launches) Expired(launch string) {
	if a := ls.State.Allocation(launch); a != nil {
		ls.backOff(a, state.OfferScope, 0, "the provider gave a request up")
		if !ls.attempts.reduces(ls.State.Job(a.Job()), a) {
			ls.unanswered(a, state.Expired, state.JobQueued{Why: "allocation_expired"})
		}
	}
}

// Cancelled handles a request that the provider dropped because scrimp asked.
func (ls *Launches) Cancelled(launch string) {
	a := ls.State.Allocation(launch)
	switch {
	case a == nil:
	case a.Phase() == state.Cancelling:
		ls.unanswered(a, state.CancelDone, state.JobQueued{})
	default:
		ls.unanswered(a, state.Expired, state.JobQueued{Why: "allocation_expired"})
	}
}

// unanswered closes an allocation that leads to nothing. The job that waited for it tries again.
func (ls *Launches) unanswered(a *state.Allocation, as state.AllocationPhase, again state.JobQueued) {
	j := ls.State.Job(a.Job())
	asked := j.Asked() == a
	ls.attempts.dropsAwaited(j, a)
	if len(a.Granted()) > 0 {
		ls.attempts.partial(j, a)
	} else {
		ls.Fact(state.AllocationClosed{Allocation: a.ID(), Phase: as})
	}
	ls.holdsAgain(j)
	ls.queue.Queue.Changed()
	if asked {
		step.TimesOf(j).Wake = time.Time{} // no answer is pending any more
	}
	if !asked || j.State().Over() {
		return
	}
	if again.Failed && j.Failures() >= 2 {
		ls.jobs.Finish(j, state.Failed, again.Why, again.Detail)
		return
	}
	ls.jobs.requeue(j, again)
	if l := ls.State.Listing(a.Offer()); l != nil {
		if until, cools := ls.State.Cooling(l); cools {
			ls.WakeAt(j, until)
		}
	}
}

// unansweredYet is the detail of a backoff from an offer whose pending request was given up for another.
const unansweredYet = "a request had no answer in time"

// mostDoublings is the largest number of times that a backoff doubles.
const mostDoublings = 6

// backOff backs off from a scope after a refusal: for CoolOff, doubled with each refusal in a row up to 64 times,
// or for as long as the provider asks if that is longer. After that, one launch tests the scope, and others wait
// for its answer.
//
// Refusals of launches that were pending when another was refused count as the same refusal, and double nothing.
func (ls *Launches) backOff(a *state.Allocation, scope state.Scope, wait time.Duration, detail string) {
	key := state.ScopeKey(scope, a.Machine())
	b := ls.State.Backoff(key)
	if b.Tries == 0 || b.Trial == a.ID() {
		b.Tries++
	}
	until := ls.Now().Add(max(ls.Config().CoolOff<<min(b.Tries-1, mostDoublings), wait))
	if until.Before(b.Until) {
		until = b.Until
	}
	ls.Fact(state.BackedOff{Scope: key, Tries: b.Tries, Until: until, Detail: detail})
}

// coolOff backs off from an offer until a time for the given reason, unless it already backs off for longer.
func (ls *Launches) coolOff(on *state.Machine, until time.Time, detail string) {
	key := state.ScopeKey(state.OfferScope, on)
	if b := ls.State.Backoff(key); b.Until.Before(until) {
		ls.Fact(state.BackedOff{Scope: key, Tries: b.Tries, Until: until, Detail: detail})
	}
}

// reviewAsked decides whether a job with a pending request should request something else: if the provider takes too
// long and another offer is available, or if the deadline requires a non-preemptible machine. Other spot is no
// safer than the pending one. An unanswered offer backs off like one that refuses, so that a job does not go back
// and forth between slow offers. If a lowered quota has no room for another machine, the job keeps its request,
// which may still be granted.
func (ls *Launches) reviewAsked(j *state.Job, a *state.Allocation) {
	step.TimesOf(j).Wake = time.Time{}
	if why, spent := admission.TimeLimitReached(j, ls.Now()); spent {
		ls.giveUp(a, string(why))
		ls.jobs.requeue(j, state.JobQueued{Why: string(why)})
		return
	}
	if _, open := j.Terms().Window.Closes(ls.Now()); !open && !j.Terms().Window.Always() {
		ls.giveUp(a, string(plan.Closed))
		ls.jobs.requeue(j, state.JobQueued{Why: string(plan.Closed)})
		return
	}
	ls.decider.ClosesAt(j)
	ls.OverAt(j)
	if ls.attempts.reviewGang(j, a) {
		return
	}
	if when := ls.decider.LooksFurther(j, a); ls.Now().Before(when) {
		ls.WakeAt(j, when)
		return
	}
	end := a.Requested().Add(ls.decider.Patience(a))
	switch d := ls.decider.Weighs(j); {
	case d.Probe != "":
		ls.decider.Decided(j, d)
		ls.attempts.probe(j, d.Probe)
	case d.Take == "" || d.Take == a.Offer() || ls.Now().Before(end) && ls.decider.IsSpotOffer(d.Take) ||
		ls.queue.Blocks()(j).By != nil:
		ls.WakeAt(j, d.Again)
		if !ls.Now().Before(end) {
			end = ls.Now().Add(ls.decider.Patience(a))
		}
		ls.WakeAt(j, end)
		ls.decider.RungAt(j)
	default:
		ls.decider.Decided(j, d)
		ls.backOff(a, state.OfferScope, 0, unansweredYet)
		ls.giveUp(a, "move_"+string(d.Why))
		ls.request(j, d)
	}
}

// giveUp cancels an unanswered allocation.
func (ls *Launches) giveUp(a *state.Allocation, why string) {
	ls.Fact(state.AllocationCancelling{Allocation: a.ID(), Why: why})
	ls.holdsAgain(nil)
	if a.Answered() { // everything requested is granted, so no other answer can come
		ls.unanswered(a, state.CancelDone, state.JobQueued{})
	}
}

// OverAt wakes a waiting job when its wall-clock limit is reached.
func (ls *Launches) OverAt(j *state.Job) {
	if w := j.Terms().WallClock; w > 0 && !j.Began().IsZero() {
		ls.WakeAt(j, j.Began().Add(w))
	}
}

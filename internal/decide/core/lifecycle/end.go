package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// closed returns when r ended, if it is an instance that has ended. That happens if the answer to a launch arrives
// after an inventory listed the instance and scrimp terminated it, or if an inventory is older than the end.
func (is *Instances) closed(r state.Rented) (time.Time, bool) {
	if i := is.State.Instance(r.Instance); i != nil {
		return i.Until(), !i.Live() && !i.Lost()
	}
	if a := is.State.AttemptOf(r.Launch); a != nil && a.On(r.Instance) != nil && !a.On(r.Instance).GivenUp() {
		k := a.On(r.Instance)
		return k.Until(), !k.Live()
	}
	return time.Time{}, false
}

// Unheard reports whether one of our jobs requested r and no event ever mentioned it: the server that rented it was
// replaced before it could record the answer. An inventory also lists instances that have ended meanwhile; their
// end is booked when it is reported.
func (is *Instances) Unheard(r state.Rented) bool {
	_, closed := is.closed(r)
	return !closed && !is.Awaits(r.Instance) && is.State.JobOf(r.Launch) != nil
}

// Awaits reports whether the end of the instance is still to be booked: it still costs something, or it was given
// up without its actual end.
func (is *Instances) Awaits(instance string) bool {
	i := is.State.Instance(instance)
	return i != nil && (i.Live() || i.Lost())
}

// Knows reports whether the instance counts among those that cost money now.
func (is *Instances) Knows(instance string) bool {
	i := is.State.Instance(instance)
	return i != nil && i.Live()
}

// shown handles an instance of an inventory that belongs to no attempt. It ignores one that ended after the
// inventory was taken.
func (is *Instances) shown(r state.Rented, asOf time.Time) {
	if until, closed := is.closed(r); !closed || asOf.After(until) {
		is.stray(r)
	}
}

// stray terminates an instance that belongs to no attempt. If its end is already paid for, it is not paid for
// again.
func (is *Instances) stray(r state.Rented) {
	if r.Instance == "" || is.State.Undecided() {
		return
	}
	i := is.State.Instance(r.Instance)
	_, paid := is.closed(r)
	switch {
	case i != nil && i.Live():
		return
	case i == nil || !i.Lost():
		is.Fact(state.StrayFound{Instance: r.Instance, Paid: paid})
	}
	is.Fact(state.InstanceReleased{Instance: r.Instance, Why: "nobody_owns_it"})
	if i := is.State.Instance(r.Instance); i != nil && is.State.Job(i.Job()) != nil {
		// it has a machine again, and may have ended before this server started
		is.queue.ClassOf(is.State.Job(i.Job()))
	}
}

// Ended handles the end of an instance.
func (is *Instances) Ended(b state.InstanceEnded) {
	i := is.State.Instance(b.Instance)
	switch {
	case i == nil, !i.Live() && !i.Lost():
	case i.Lost():
		is.late(i, b.Until, b.Cause)
	case i.Stray():
		is.strayEnded(i, is.State.EndOf(i, b.Until), "terminated")
	default:
		is.instanceEnded(i, is.State.EndOf(i, b.Until), b.Cause, false)
	}
}

// freesReserved notes the offer of a machine that is gone, if it is reserved.
func (is *Instances) freesReserved(i *state.Instance) {
	if m := i.Machine(); m.Prepaid && !slices.Contains(is.freed, m.Offer) {
		is.freed = append(is.freed, m.Offer)
	}
}

// strayEnded books an instance that scrimp did not request as overhead, until its bill replaces that.
func (is *Instances) strayEnded(i *state.Instance, until time.Time, cause string) {
	if !i.Paid() {
		is.books.BookStray(i, i.LaunchRate().Until(until.Sub(i.From())), "")
	}
	is.Fact(state.InstanceClosed{Instance: i.ID(), Until: until, Cause: cause})
	is.freesReserved(i)
}

// instanceEnded settles the use of the rest of its tasks' time, and lets jobs whose programs were cut off try
// again. givenUp is set if its provider no longer lists it.
func (is *Instances) instanceEnded(i *state.Instance, until time.Time, cause string, givenUp bool) {
	if _, idle := i.Idle(); idle {
		is.idleEnded(i, until, cause, givenUp)
		return
	}
	f := state.InstanceClosed{Instance: i.ID(), Until: until, Cause: cause, GivenUp: givenUp}
	tasks := is.State.TasksOn(i)
	if len(tasks) == 0 { // its allocation is incomplete
		is.takesBack(i, until)
		is.Fact(f)
		for _, seat := range i.Seats() {
			is.attempts.lacks(is.State.JobOf(seat.Attempt), i)
		}
		return
	}
	ends := make([]seatEnd, len(tasks))
	for n, k := range tasks {
		j := is.State.Job(k.Attempt().Job())
		ends[n] = is.settleEnd(j, k, is.overran(i, k, until))
		// terminated early, but interrupted all the same
		ends[n].taken = cause == "interrupted" || !k.Noticed().IsZero()
		ends[n].Unsaved = ends[n].taken && placement.IsSpot(k.Attempt()) && !j.HasSaved() &&
			is.attempts.begun(k.Attempt()) && firstTaken(k)
	}
	f.Lost, f.Unsaved = ends[0].Lost, ends[0].Unsaved
	for _, end := range ends[1:] {
		f.Others = append(f.Others, end.SeatEnd)
	}
	is.freesReserved(i)
	is.Fact(f)
	is.jobs.Freed()
	for n, k := range tasks {
		is.attempts.lacks(is.State.Job(k.Attempt().Job()), i)
		is.afterEnd(is.State.Job(k.Attempt().Job()), k, cause, ends[n])
	}
}

// seatEnd describes the loss of a task when its machine or its seat ended.
type seatEnd struct {
	state.SeatEnd
	taken  bool // by the provider
	cut    bool // its program had not ended
	newest bool // there is no later attempt
}

// settleEnd settles the use of the rest of a task's time.
func (is *Instances) settleEnd(j *state.Job, k *state.Task, until time.Time) seatEnd {
	a := k.Attempt()
	end := seatEnd{SeatEnd: state.SeatEnd{Attempt: a.ID()}, cut: k.Over().IsZero(), newest: j.Attempt() == a}
	use := ledger.Lost
	switch {
	case !k.Over().IsZero():
		use = ledger.Idle
	case k.Started().IsZero():
		use = ledger.StartUp
	default:
		end.Lost = max(0, until.Sub(k.Kept()))
		is.books.Settle(j, k, ledger.Useful, k.Kept())
	}
	is.books.Settle(j, k, use, until)
	is.books.Level(j, k, use, until)
	is.queue.ServedGPUs(j, k, k.From(), until)
	is.admission.SumGPUs(j, k, k.From(), until)
	return end
}

// firstTaken reports whether no other machine of the attempt was interrupted: a gang counts one interruption.
func firstTaken(k *state.Task) bool {
	return !slices.ContainsFunc(k.Attempt().Tasks(), func(x *state.Task) bool { return x != k && x.Taken() })
}

// afterEnd lets a job whose program was cut off try again.
func (is *Instances) afterEnd(j *state.Job, k *state.Task, cause string, end seatEnd) {
	a := k.Attempt()
	if end.taken && placement.IsSpot(a) && firstTaken(k) {
		is.decider.Failed(j, a.Rung())
	}
	if !end.cut || !end.newest || j.Asked() != nil {
		return
	}
	switch j.State() {
	case state.Running:
		if a.Nodes() > 1 {
			is.attempts.lostRank(j, k)
			return
		}
		is.cutOff(j, a, cause)
	case state.Queued: // it was resumed while its machine was being terminated
		is.jobs.requeue(j, state.JobQueued{Why: state.Resumed})
	case state.Held, state.Paused, state.Succeeded, state.Failed, state.Stopped, state.Cancelled:
	}
}

// cutOff lets a job whose program was cut off try again, or ends the job if it never makes progress.
func (is *Instances) cutOff(j *state.Job, a *state.Attempt, cause string) {
	if j.Ending() != "" {
		is.jobs.Finish(j, j.Ending(), j.EndingWhy(), j.Detail())
		return
	}
	q := state.JobQueued{Why: cmp.Or(a.End(), "lost")}
	// by itself: a machine that is being terminated may report its shutdown first
	stopped := cause == "stopped" && a.End() == cause
	if silent := a.End() == "silent" && a.Started().IsZero(); silent || stopped && a.Step() <= a.First() {
		// Another offer may do better, if there is one. If the agent did claim its task, the machine was fine.
		if silent && a.Claimed().IsZero() {
			is.launches.coolOff(a.Machine(), is.Now().Add(is.market.TimingOf(a.Machine()).BootLimit),
				"the agent of the last machine was not heard of in time")
		}
		if q.Failed = true; j.Failures() >= 4 {
			why := "agent_stops"
			if silent {
				why = "never_starts"
			}
			is.jobs.Finish(j, state.Failed, why, j.Detail())
			return
		}
	}
	is.jobs.requeue(j, q)
}

// late handles the actual end of an instance that was given up: the extra time it cost is lost.
func (is *Instances) late(i *state.Instance, until time.Time, cause string) {
	if until.After(is.Now()) {
		until = is.Now()
	}
	is.freesReserved(i)
	tasks := is.State.TasksOn(i)
	if slices.ContainsFunc(tasks, func(k *state.Task) bool { return k.Taken() && k.Over().IsZero() }) {
		cause = "interrupted" // its program was interrupted, however the machine ended after it was heard from again
	}
	if is.books.Incomplete(i) { // its time is booked when its allocation is closed
		if until.After(i.Until()) {
			is.Fact(state.InstanceExtended{Instance: i.ID(), Until: until, Cause: cause})
		}
		is.Fact(state.InstanceLeft{Instance: i.ID()})
		return
	}
	if len(tasks) == 0 { // it had no task
		is.Fact(state.InstanceExtended{Instance: i.ID(), Until: until, Cause: cause})
		is.accrueIdle(i, &i.Idles()[len(i.Idles())-1], i.Until())
		is.Fact(state.InstanceLeft{Instance: i.ID()})
		return
	}
	for _, k := range tasks {
		if known := k.Until(); until.After(known) {
			is.queue.ServedGPUs(is.State.Job(k.Attempt().Job()), k, known, until)
			is.admission.SumGPUs(is.State.Job(k.Attempt().Job()), k, known, until)
		}
	}
	if until.After(i.Until()) {
		is.Fact(state.InstanceExtended{Instance: i.ID(), Until: until, Cause: cause})
	}
	for _, k := range tasks {
		j := is.State.Job(k.Attempt().Job())
		is.jobs.Watcher.Uses(j) // its machine ran longer than was known
		is.ranOn(i, k)
		is.books.Settle(j, k, ledger.Lost, k.Until())
		is.books.Level(j, k, ledger.Lost, k.Until())
	}
	is.Fact(state.InstanceLeft{Instance: i.ID()})
}

// Inventory compares what a provider lists with the state: it adopts launches whose answer was lost, terminates
// instances that nobody owns, and notices missing ones.
func (is *Instances) Inventory(b state.InventorySeen) {
	shown := map[string]bool{}
	for _, r := range b.Running {
		shown[r.Instance] = true
		if i := is.State.Instance(r.Instance); i != nil && i.Live() && !i.Missing().IsZero() {
			is.Fact(state.InstanceListed{Instance: r.Instance})
		}
		a := is.State.Attempt(r.Launch)
		switch {
		case is.State.Allocation(r.Launch) != nil:
			is.launches.Launched(r)
		case a == nil || a.On(r.Instance) == nil || !a.On(r.Instance).Live():
			is.shown(r, b.AsOf)
		}
	}
	for _, i := range is.State.Instances() {
		if expected(i, b) && !shown[i.ID()] {
			is.unlisted(i, b.AsOf)
		}
	}
}

// expected reports whether a complete inventory of the provider lists the machine.
func expected(i *state.Instance, b state.InventorySeen) bool {
	return i.Live() && !i.Lost() && !i.Stray() && !i.Disowned() && i.Machine().Provider == b.Provider &&
		i.From().Before(b.AsOf)
}

// unlisted handles an instance that its provider's list lacks. The instance is lost once that lasts longer than the
// list may lag.
func (is *Instances) unlisted(i *state.Instance, asOf time.Time) {
	since := i.Missing()
	lags := is.market.TimingOf(i.Machine()).Consistency
	switch {
	case lags == 0:
	case since.IsZero():
		is.Fact(state.InstanceMissing{Instance: i.ID()})
		return
	case asOf.Sub(since) < lags || asOf.Sub(i.From()) < lags:
		return
	}
	is.instanceEnded(i, is.State.EndOf(i, asOf), "interrupted", true)
}

// Incarnation records that the log belongs to a new incarnation.
func (is *Instances) Incarnation(b state.IncarnationBegun) {
	if b.Incarnation > is.State.Incarnation() {
		is.Fact(state.IncarnationSet{})
	}
}

// Owned handles a user's decision about machines of an earlier incarnation. Adopted machines continue. Released
// ones belong to another server, and their jobs try again.
func (is *Instances) Owned(b state.OwnershipDecided) {
	for _, u := range is.State.AllUndecided() {
		if b.Instance != "" && b.Instance != u.Instance {
			continue
		}
		i := is.State.Instance(u.Instance)
		open := i != nil && i.Disowned() && (i.Live() || i.Lost())
		is.Fact(state.InstanceOwned{Instance: u.Instance})
		if open { // it has not ended meanwhile
			is.owned(i, b.Adopt)
		}
	}
	is.queue.Queue.Changed()
	if is.State.Undecided() {
		return
	}
	for _, a := range is.Pending() { // actions that became due meanwhile
		if !slices.ContainsFunc(is.Out.Actions, func(b step.Action) bool { return a.Key() == b.Key() }) {
			is.Out.Actions = append(is.Out.Actions, a)
		}
	}
}

// owned adopts a machine of an earlier incarnation or disclaims it. The attempts on an adopted machine catch up with
// what happened while nobody had decided.
func (is *Instances) owned(i *state.Instance, adopt bool) {
	seated := is.State.SeatedAll(i)
	is.reviewSeats(i, "")
	if !adopt {
		is.disclaim(i)
		return
	}
	for _, a := range seated {
		switch j := is.State.Job(a.Job()); {
		case !a.Over().IsZero(): // its program ended meanwhile
			is.jobs.release(a, "program_"+a.End(), "")
		case j.State().Over() || a != j.Attempt(): // nobody has needed it since
			is.jobs.release(a, j.Why(), "")
		case a.Partial() > 0: // its gang was given up meanwhile
			is.jobs.release(a, "gang_wait", "gang_wait")
		case a.Draining() && a.Task() == state.TaskRunning: // nobody could tell it
			is.jobs.drains(j, a, state.DrainRequested{Why: a.DrainWhy(), MigratesTo: j.MigratingTo()})
		}
	}
}

// disclaim removes an instance from the log without terminating it.
func (is *Instances) disclaim(i *state.Instance) {
	switch {
	case i.Lost():
		is.late(i, is.Now(), "released")
		return
	case i.Stray():
		is.strayEnded(i, is.State.EndOf(i, is.Now()), "released")
		return
	}
	is.instanceEnded(i, is.State.EndOf(i, is.Now()), "released", false)
}

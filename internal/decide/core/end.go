package core

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// closed returns when r ended, where it is an instance that has ended: the answer to its
// launch comes after the inventory showed it and it was given back, or an inventory
// comes that is older than its end.
func (m *Machine) closed(r Rented) (time.Time, bool) {
	if i := m.s.Instance(r.Instance); i != nil {
		return i.Until(), !i.Live() && !i.Lost()
	}
	if a := m.s.AttemptOf(r.Launch); a != nil && a.On(r.Instance) != nil && !a.On(r.Instance).GivenUp() {
		k := a.On(r.Instance)
		return k.Until(), !k.Live()
	}
	return time.Time{}, false
}

// Unheard reports whether a job of ours asked for r and nothing was ever heard of
// it: whoever rented it was replaced before they could say so. What has ended
// meanwhile is shown in an inventory like what runs, and is booked when its end is told.
func (m *Machine) Unheard(r Rented) bool {
	_, closed := m.closed(r)
	return !closed && !m.Awaits(r.Instance) && m.s.JobOf(r.Launch) != nil
}

// Awaits reports whether the end of the instance would still be booked: it is
// counted among those that cost something, or it was given up without its true end.
func (m *Machine) Awaits(instance string) bool {
	i := m.s.Instance(instance)
	return i != nil && (i.Live() || i.Lost())
}

// Knows reports whether the instance is counted among those that cost something now.
func (m *Machine) Knows(instance string) bool {
	i := m.s.Instance(instance)
	return i != nil && i.Live()
}

// shown takes an instance of an inventory that no attempt has. One that ended
// after the inventory was taken is none any more.
func (m *Machine) shown(r Rented, asOf time.Time) {
	if until, closed := m.closed(r); !closed || asOf.After(until) {
		m.stray(r)
	}
}

// stray gives back an instance that no attempt has. One whose end is paid for is not
// paid again.
func (m *Machine) stray(r Rented) {
	if r.Instance == "" || m.s.Undecided() {
		return
	}
	i := m.s.Instance(r.Instance)
	_, paid := m.closed(r)
	switch {
	case i != nil && i.Live():
		return
	case i == nil || !i.Lost():
		m.fact(state.StrayFound{Instance: r.Instance, Paid: paid})
	}
	m.fact(state.InstanceReleased{Instance: r.Instance, Why: "nobody_owns_it"})
	if i := m.s.Instance(r.Instance); i != nil && m.s.Job(i.Job()) != nil {
		m.classOf(m.s.Job(i.Job())) // it has a machine again, and may have been over when this server began
	}
}

// ended takes the end of an instance.
func (m *Machine) ended(b InstanceEnded) {
	i := m.s.Instance(b.Instance)
	switch {
	case i == nil, !i.Live() && !i.Lost():
	case i.Lost():
		m.late(i, b.Until, b.Cause)
	case i.Stray():
		m.strayEnded(i, m.s.EndOf(i, b.Until), "terminated")
	default:
		m.instanceEnded(i, m.s.EndOf(i, b.Until), b.Cause, false)
	}
}

// strayEnded books an instance that nobody asked for as overhead, until its bill says otherwise.
func (m *Machine) strayEnded(i *Instance, until time.Time, cause string) {
	if !i.Paid() {
		m.bookStray(i, i.LaunchRate().Until(until.Sub(i.From())), "")
	}
	m.fact(state.InstanceClosed{Instance: i.ID(), Until: until, Cause: cause})
	m.freedReserved = m.freedReserved || i.Machine().Prepaid
}

// instanceEnded settles what the rest of its tasks' time was for, and lets the jobs try
// again whose programs were cut off. givenUp says that its provider lists it no more.
func (m *Machine) instanceEnded(i *Instance, until time.Time, cause string, givenUp bool) {
	if _, idle := i.Idle(); idle {
		m.idleEnded(i, until, cause, givenUp)
		return
	}
	f := state.InstanceClosed{Instance: i.ID(), Until: until, Cause: cause, GivenUp: givenUp}
	tasks := m.s.TasksOn(i)
	if len(tasks) == 0 { // of an allocation that is not complete
		m.fact(f)
		for _, seat := range i.Seats() {
			m.lacks(m.s.JobOf(seat.Attempt), i)
		}
		return
	}
	ends := make([]seatEnd, len(tasks))
	for n, k := range tasks {
		j := m.s.Job(k.Attempt().Job())
		ends[n] = m.settleEnd(j, k, m.overran(i, k, until))
		ends[n].taken = cause == "interrupted" || !k.Noticed().IsZero() // given back early, but interrupted all the same
		ends[n].Unsaved = ends[n].taken && isSpot(k.Attempt()) && !j.HasSaved() && m.begun(k.Attempt()) && firstTaken(k)
	}
	f.Lost, f.Unsaved = ends[0].Lost, ends[0].Unsaved
	for _, end := range ends[1:] {
		f.Others = append(f.Others, end.SeatEnd)
	}
	prepaid := i.Machine().Prepaid
	m.fact(f)
	m.freedReserved = m.freedReserved || prepaid
	m.freed()
	for n, k := range tasks {
		m.lacks(m.s.Job(k.Attempt().Job()), i)
		m.afterEnd(m.s.Job(k.Attempt().Job()), k, cause, ends[n])
	}
}

// seatEnd is what the end of a task's machine, or of its seat there, was to it.
type seatEnd struct {
	state.SeatEnd
	taken  bool // by the provider
	cut    bool // its program had not ended
	newest bool // no later attempt is there
}

// settleEnd settles what the rest of a task's time was for.
func (m *Machine) settleEnd(j *Job, k *Task, until time.Time) seatEnd {
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
		m.settle(j, k, ledger.Useful, k.Kept())
	}
	m.settle(j, k, use, until)
	m.level(j, k, use, until)
	m.servedGPUs(j, k, k.From(), until)
	m.sumGPUs(j, k, k.From(), until)
	return end
}

// firstTaken reports whether no other machine of the attempt was taken: a gang is interrupted once.
func firstTaken(k *Task) bool {
	return !slices.ContainsFunc(k.Attempt().Tasks(), func(x *Task) bool { return x != k && x.Taken() })
}

// afterEnd lets a job try again whose program was cut off.
func (m *Machine) afterEnd(j *Job, k *Task, cause string, end seatEnd) {
	a := k.Attempt()
	if end.taken && isSpot(a) && firstTaken(k) {
		m.failed(j, a.Rung())
	}
	if !end.cut || !end.newest || j.Asked() != nil {
		return
	}
	switch j.State() {
	case Running:
		if a.Nodes() > 1 {
			m.lostRank(j, k)
			return
		}
		m.cutOff(j, a, cause)
	case Queued: // it was resumed while the machine was given back
		m.requeue(j, state.JobQueued{Why: state.Resumed})
	case Held, Paused, Succeeded, Failed, Stopped, Cancelled:
	}
}

// cutOff lets a job try again whose program was cut off, or ends it where it never gets on.
func (m *Machine) cutOff(j *Job, a *Attempt, cause string) {
	if j.Ending() != "" {
		m.finish(j, j.Ending(), j.EndingWhy(), j.Detail())
		return
	}
	q := state.JobQueued{Why: cmp.Or(a.End(), "lost")}
	stopped := cause == "stopped" && a.End() == cause // by itself: one that is given back may be the first to switch off
	if silent := a.End() == "silent" && a.Started().IsZero(); silent || stopped && a.Step() <= a.First() {
		if silent && a.Claimed().IsZero() { // where there is another offer, it may do better; else its machine was there
			m.coolOff(a.Machine(), m.now().Add(m.timingOf(a.Machine()).BootLimit),
				"the agent of the last machine was not heard of in time")
		}
		if q.Failed = true; j.Failures() >= 4 {
			why := "agent_stops"
			if silent {
				why = "never_starts"
			}
			m.finish(j, Failed, why, j.Detail())
			return
		}
	}
	m.requeue(j, q)
}

// late takes the end of an instance that was given up for lost: what it cost
// longer than we knew was for nothing.
func (m *Machine) late(i *Instance, until time.Time, cause string) {
	if until.After(m.now()) {
		until = m.now()
	}
	m.freedReserved = m.freedReserved || i.Machine().Prepaid
	tasks := m.s.TasksOn(i)
	if slices.ContainsFunc(tasks, func(k *Task) bool { return k.Taken() && k.Over().IsZero() }) {
		cause = "interrupted" // its program was, however the machine ended once it was heard of again
	}
	if len(tasks) == 0 && len(i.Idles()) == 0 { // of an allocation that never was complete
		return
	}
	if len(tasks) == 0 { // it had no task
		m.fact(state.InstanceExtended{Instance: i.ID(), Until: until, Cause: cause})
		m.accrueIdle(i, &i.Idles()[len(i.Idles())-1], i.Until())
		m.fact(state.InstanceLeft{Instance: i.ID()})
		return
	}
	extends := false
	for _, k := range tasks {
		if known := k.Until(); until.After(known) {
			extends = true
			m.servedGPUs(m.s.Job(k.Attempt().Job()), k, known, until)
			m.sumGPUs(m.s.Job(k.Attempt().Job()), k, known, until)
		}
	}
	if extends {
		m.fact(state.InstanceExtended{Instance: i.ID(), Until: until, Cause: cause})
	}
	for _, k := range tasks {
		j := m.s.Job(k.Attempt().Job())
		m.settle(j, k, ledger.Lost, k.Until())
		m.level(j, k, ledger.Lost, k.Until())
	}
	m.fact(state.InstanceLeft{Instance: i.ID()})
}

// inventory compares what a provider shows with what we know: adopts launches
// whose answer was lost, gives back what nobody owns, and notices what is gone.
func (m *Machine) inventory(b InventorySeen) {
	shown := map[string]bool{}
	for _, r := range b.Running {
		shown[r.Instance] = true
		if i := m.s.Instance(r.Instance); i != nil && i.Live() && !i.Missing().IsZero() {
			m.fact(state.InstanceListed{Instance: r.Instance})
		}
		a := m.s.Attempt(r.Launch)
		switch {
		case m.s.Allocation(r.Launch) != nil:
			m.launched(r)
		case a == nil || a.On(r.Instance) == nil || !a.On(r.Instance).Live():
			m.shown(r, b.AsOf)
		}
	}
	for _, i := range m.s.Instances() {
		if !i.Live() || i.Lost() || i.Stray() || i.Disowned() || i.Machine().Provider != b.Provider || shown[i.ID()] ||
			!i.From().Before(b.AsOf) {
			continue
		}
		m.unlisted(i, b.AsOf)
	}
}

// unlisted takes that a provider's list lacks an instance: it is lost once that lasts
// for longer than the list may lag.
func (m *Machine) unlisted(i *Instance, asOf time.Time) {
	since := i.Missing()
	lags := m.timingOf(i.Machine()).Consistency
	switch {
	case lags == 0:
	case since.IsZero():
		m.fact(state.InstanceMissing{Instance: i.ID()})
		return
	case asOf.Sub(since) < lags || asOf.Sub(i.From()) < lags:
		return
	}
	m.instanceEnded(i, m.s.EndOf(i, asOf), "interrupted", true)
}

// incarnation takes that the log is the installation's from now on.
func (m *Machine) incarnation(b IncarnationBegun) {
	if b.Incarnation > m.s.Incarnation() {
		m.fact(state.IncarnationSet{})
	}
}

// owned takes that somebody has decided whose machines of an earlier incarnation are.
// What is adopted goes on; what is not was another's, and its job tries again.
func (m *Machine) owned(b OwnershipDecided) {
	for _, u := range m.s.AllUndecided() {
		if b.Instance != "" && b.Instance != u.Instance {
			continue
		}
		i := m.s.Instance(u.Instance)
		open := i != nil && i.Disowned() && (i.Live() || i.Lost())
		m.fact(state.InstanceOwned{Instance: u.Instance})
		if !open {
			continue // it has ended meanwhile
		}
		seated := m.s.SeatedAll(i)
		m.reviewSeats(i, "")
		if !b.Adopt {
			m.disclaim(i)
			continue
		}
		for _, a := range seated {
			switch j := m.s.Job(a.Job()); {
			case !a.Over().IsZero(): // its program ended meanwhile
				m.release(a, "program_"+a.End(), "")
			case j.State().Over() || a != j.Attempt(): // nobody has needed it since
				m.release(a, j.Why(), "")
			case a.Partial() > 0: // its gang was given up meanwhile
				m.release(a, "gang_wait", "gang_wait")
			case a.Draining() && a.Task() == TaskRunning: // nobody could tell it
				m.drains(j, a, a.DrainWhy(), j.MigratingTo())
			}
		}
	}
	m.queue.changed()
	if m.s.Undecided() {
		return
	}
	for _, a := range m.Pending() { // what was wanted meanwhile
		if !slices.ContainsFunc(m.out.Actions, func(b Action) bool { return a.Key() == b.Key() }) {
			m.out.Actions = append(m.out.Actions, a)
		}
	}
}

// disclaim takes an instance off the log's hands without ending it.
func (m *Machine) disclaim(i *Instance) {
	switch {
	case i.Lost():
		m.late(i, m.now(), "released")
		return
	case i.Stray():
		m.strayEnded(i, m.s.EndOf(i, m.now()), "released")
		return
	}
	m.instanceEnded(i, m.s.EndOf(i, m.now()), "released", false)
}

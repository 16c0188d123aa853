package core

import (
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/policy/warm"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// mayKeep reports whether the machine of a task whose program has ended may serve another
// job: not where it is interrupted, moved from, at fault or out of the log's hands.
func (m *Machine) mayKeep(k *Task, end string) bool {
	a := k.Attempt()
	i := m.s.Instance(k.Instance())
	switch {
	case m.timingOf(a.Machine()).Idle <= 0 || a.Machine().Prepaid:
		return false
	case i == nil || i.Agent() == nil || i.Release() != "" || i.Disowned() || m.s.Undecided():
		return false
	case !i.Missing().IsZero() || len(i.Seats()) != 1 || m.s.Seated(i) != a || i.Phase() == state.Provisioning:
		return false
	}
	moved := a.Draining() && m.s.Job(a.Job()).MigratingTo() != ""
	return i.Noticed().IsZero() && end != "setup" && !moved && a.DrainWhy() != "lifetime_ends"
}

// vacate leaves the machine of a task to the next job of its user, for as long as that is
// expected to pay and its team has room for it; else it is given back.
func (m *Machine) vacate(j *Job, k *Task, reason string) {
	i := m.s.Instance(k.Instance())
	keep := m.keepsFor(j, k.Attempt(), i)
	most := i.PresentRate().Until(max(0, keep, m.paidUntil(i).Sub(m.now())))
	if keep <= 0 || m.noRoom(j, i, most) {
		m.releaseMachine(k, "program_"+reason, "")
		return
	}
	m.level(j, k, ledger.Idle, m.now())
	m.servedGPUs(j, k, k.From(), m.now())
	m.sumGPUs(j, k, k.From(), m.now())
	m.fact(state.SeatLeft{Instance: i.ID(), Keep: m.now().Add(keep), Most: most})
	m.freed()
}

// keepsFor is how long a machine waits for the next job at most.
func (m *Machine) keepsFor(j *Job, a *Attempt, i *Instance) time.Duration {
	l := m.s.Listing(a.Offer())
	if l == nil {
		return 0
	}
	o := l.Offer()
	paid := m.paidUntil(i).Sub(m.now())
	keep := min(warm.Keep(m.startOf(j, i), paid, m.s.Gaps(j.User())), m.timingOf(a.Machine()).Idle)
	if o.MaxLifetime > 0 {
		keep = min(keep, i.From().Add(o.MaxLifetime/2).Sub(m.now())) // what is left is to be of use
	}
	return keep
}

// heldIdle says what of a limit that has no room is held for machines that wait for a job.
func (m *Machine) heldIdle(no *budget.Refusal, t time.Time) string {
	held, n := money.Amount{}, 0
	for _, i := range m.s.Waiting() {
		idle, _ := i.Idle()
		if v := m.idleJob(i, &idle, t); no.Limit.Scope.Holds(v.Owner, v.User) && v.Most.Cmp(v.Spent) > 0 {
			held, n = held.Add(v.Most.Sub(v.Spent)), n+1
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s of what is held is for %s waiting for a job and paid for anyway (scrimp machines)",
		money.Short(held, m.cfg().Currency), count(n, "machine"))
}

// paidUntil is until when a machine is paid for anyway, by its minimum charge.
func (m *Machine) paidUntil(i *Instance) time.Time {
	if l := m.s.Listing(i.Machine().Offer); l != nil {
		return i.From().Add(l.Offer().Billing.Minimum)
	}
	return i.From()
}

// startOf is what a start takes: what the first one on this machine took, else as the job expects.
func (m *Machine) startOf(j *Job, i *Instance) time.Duration {
	if a := m.s.AttemptOf(i.Allocation()); a != nil && !a.Started().IsZero() {
		return max(0, a.Started().Sub(a.Requested())-a.Transfer())
	}
	return j.Restart()
}

// noRoom reports whether a limit has no room for what a machine may cost while it waits. Its
// last job holds nothing more where it is over.
func (m *Machine) noRoom(j *Job, i *Instance, most money.Amount) bool {
	if len(m.rules().Limits) == 0 {
		return false
	}
	books, _ := m.Books(m.now())
	if j.State().Over() {
		books = books.Without(budget.Job{ID: j.ID()})
	}
	books = books.Folded()
	w := m.weigher()
	w.books = &books
	return w.weigh(budget.Job{ID: i.ID(), Owner: j.Terms().Owner, User: j.User(), Most: most, Bounded: true,
		GPUBounded: true, Kind: budget.Hold}, &Terms{}) != nil
}

// idleJob is a machine that waits as limits see it by t: what it is paid for anyway is held.
// What it may cost beyond has to give way to whatever needs the room.
func (m *Machine) idleJob(i *Instance, idle *state.Idle, t time.Time) budget.Job {
	spent := idle.Posted.Add(i.Cost(t)).Sub(i.Posted())
	most := spent
	if paid := m.paidUntil(i); paid.After(t) {
		most = spent.Add(i.PresentRate().Until(paid.Sub(t)))
	}
	if most.Cmp(idle.Most) > 0 {
		most = idle.Most
	}
	if most.Cmp(spent) < 0 {
		most = spent
	}
	return budget.Job{ID: i.ID(), Owner: idle.Owner, User: idle.User, Most: most, Spent: spent, Bounded: true,
		GPUBounded: true, Kind: budget.Hold}
}

// Cleans reports whether it is news that nothing of an earlier task is left on a machine.
func (m *Machine) Cleans(instance string) bool {
	i := m.s.Instance(instance)
	if i == nil || !i.Live() {
		return false
	}
	idle, ok := i.Idle()
	return ok && idle.Clean.IsZero()
}

// cleaned takes that a machine without a task may be used.
func (m *Machine) cleaned(instance string) {
	if m.Cleans(instance) {
		m.fact(state.InstanceCleaned{Instance: instance})
		m.queue.changed()
	}
}

// tend gives back the machines that have waited for long enough, and posts by the hour what
// waiting costs.
func (m *Machine) tend() {
	for _, i := range m.s.Waiting() {
		idle, _ := i.Idle()
		switch {
		case i.Release() != "" || i.Disowned() || m.faults.Waits:
		case idle.Clean.IsZero() && !m.now().Before(m.cleanBy(i, &idle)):
			m.releaseIdle(i, "not_clean")
		case m.needsRoom() && m.shortOfRoom(i, &idle):
			m.releaseIdle(i, "no_room")
		case !m.idleUntil(i, &idle).After(m.now().Add(time.Millisecond)): // amounts are rounded
			m.releaseIdle(i, "idle")
		}
		if !m.now().Before(hourAfter(&idle)) {
			m.accrueIdle(i, &idle, m.now())
		}
	}
}

// cleanBy is by when a machine must be shown clean: one that is not is of no use.
func (m *Machine) cleanBy(i *Instance, idle *state.Idle) time.Time {
	return idle.From.Add(m.timingOf(i.Machine()).Detect + m.cfg().Patience)
}

// needsRoom reports whether the event may have let something in that needs the room which a
// machine that waits has.
func (m *Machine) needsRoom() bool {
	switch m.e.Body.(type) {
	case JobSubmitted, JobReviewed, JobResumed, JobUpdated, GroupOpened, GroupReviewed, Spawn, BudgetsSet:
		return len(m.rules().Limits) > 0
	}
	return false
}

// shortOfRoom reports whether a limit has no room any more for what a machine that waits may
// cost beyond what it is paid for anyway.
func (m *Machine) shortOfRoom(i *Instance, idle *state.Idle) bool {
	w := m.weigher()
	v := m.idleJob(i, idle, m.now())
	v.ID, v.Most, v.Spent = "", idle.Most.Sub(v.Most), money.Amount{}
	return v.Most.Sign() > 0 && w.weigh(v, &Terms{}) != nil
}

// hourAfter is the end of the hour in which the cost of a span without a task was posted last.
func hourAfter(idle *state.Idle) time.Time {
	last := later(idle.From, idle.Settled)
	return last.Truncate(time.Hour).Add(time.Hour)
}

// idleUntil is when a machine that waits is given back: once its time is over, or what is held
// for it would be spent at the present price.
func (m *Machine) idleUntil(i *Instance, idle *state.Idle) time.Time {
	rate := i.PresentRate()
	keep := idle.Keep
	if most := idle.From.Add(m.timingOf(i.Machine()).Idle); most.Before(keep) { // it was set anew
		keep = most
	}
	left := idle.Most.Sub(idle.Posted).Sub(i.Cost(m.now()).Sub(i.Posted()))
	if !keep.After(m.now()) || rate <= 0 || rate.Until(keep.Sub(m.now())).Cmp(left) <= 0 {
		return keep
	}
	span, _ := rate.Buys(left)
	return m.now().Add(max(0, span))
}

// wakeForIdle is when a machine that waits is to be looked at next; zero: none does.
func (m *Machine) wakeForIdle() (soonest time.Time) {
	for _, i := range m.s.Waiting() {
		idle, _ := i.Idle()
		t := m.now().Truncate(time.Hour).Add(time.Hour)
		if by := m.cleanBy(i, &idle); idle.Clean.IsZero() && by.Before(t) && i.Release() == "" && !i.Disowned() &&
			!m.faults.Waits {
			t = by
		}
		if end := m.idleUntil(i, &idle); i.Release() == "" && !i.Disowned() && !m.faults.Waits && end.Before(t) {
			t = end
		}
		if !t.After(m.now()) {
			t = m.now().Add(time.Nanosecond)
		}
		if soonest.IsZero() || t.Before(soonest) {
			soonest = t
		}
	}
	return soonest
}

// releaseIdle gives a machine without a task back.
func (m *Machine) releaseIdle(i *Instance, why string) {
	if i.Release() == "" && !i.Disowned() {
		m.fact(state.InstanceReleased{Instance: i.ID(), Why: why})
	}
}

// accrueIdle posts what a machine has cost by t and no task has.
func (m *Machine) accrueIdle(i *Instance, idle *state.Idle, t time.Time) {
	due := i.Cost(t).Sub(i.Posted())
	known := later(idle.From, idle.Accrued)
	begin, end := known, t
	if t.Before(known) {
		begin, end = t, known
	}
	for _, p := range i.Pieces(begin, end) {
		if t.Before(known) {
			p.Amount = p.Amount.Neg()
		}
		due = due.Sub(p.Amount)
		m.chargeIdle(i, m.timed(m.idleEntry(i, idle, ledger.Accrued, ""), i.Machine(), undivided(p)), p.Amount)
	}
	m.chargeIdle(i, m.idleEntry(i, idle, ledger.Accrued, PricedLater), due)
}

// undivided is a piece of the time of a machine that nobody shares.
func undivided(p market.Piece) state.Piece { return state.Piece{Piece: p, Part: 1, Whole: 1} }

// chargeIdle posts a cost of a span without a task.
func (m *Machine) chargeIdle(i *Instance, p ledger.Posting, amount money.Amount) {
	m.enter(p, amount, ledger.Payable(i.Machine().Provider), ledger.Cost(p.Category, ledger.Idle))
}

// idleEntry is a posting about a span without a task, without its amount.
func (m *Machine) idleEntry(i *Instance, idle *state.Idle, phase ledger.Phase, rule string) ledger.Posting {
	return bought(i.Machine(), ledger.Posting{Phase: phase, Use: ledger.Idle, Rule: rule, Owner: idle.Owner})
}

// idleEnded takes the end of a machine that had no task.
func (m *Machine) idleEnded(i *Instance, until time.Time, cause string, givenUp bool) {
	idle, _ := i.Idle()
	m.accrueIdle(i, &idle, until)
	m.fact(state.InstanceClosed{Instance: i.ID(), Until: until, Cause: cause, GivenUp: givenUp})
	m.freed()
}

// overran takes back from an attempt that took a machine without a task, or a part of one, what it
// was not there for: the machine had ended before, and nobody knew. It returns when the attempt ended.
func (m *Machine) overran(i *Instance, k *Task, until time.Time) time.Time {
	a := k.Attempt()
	if !k.Warm() || !until.Before(k.From()) {
		return until
	}
	at := slices.IndexFunc(i.Idles(), func(x state.Idle) bool { return x.Taken == a.ID() })
	if at < 0 { // others had it before: what they paid is theirs
		return k.From()
	}
	idle := &i.Idles()[at]
	for _, p := range i.Pieces(until, k.From()) {
		entry := m.timed(m.idleEntry(i, idle, ledger.Accrued, "settled_too_far"), i.Machine(), undivided(p))
		m.chargeIdle(i, entry, p.Amount.Neg())
	}
	return k.From()
}

// IdleAfter is what the machines of a job cost by t after its attempts, while they waited for
// another; nil: none has.
func (m *Machine) IdleAfter(j *Job, t time.Time) *money.Amount {
	var sum *money.Amount
	for _, a := range j.Attempts() {
		i := m.s.Instance(a.Instance())
		if a.Cause() != state.Kept || i == nil {
			continue
		}
		for _, idle := range i.Idles() {
			if idle.After != a.ID() {
				continue
			}
			cost := idle.Posted.Add(idle.Rules)
			if idle.Until.IsZero() {
				cost = cost.Add(i.Cost(t).Sub(i.Posted()))
			}
			if sum == nil {
				sum = &money.Amount{}
			}
			*sum = sum.Add(cost)
		}
	}
	return sum
}

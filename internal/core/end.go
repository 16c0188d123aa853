package core

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
)

// closed returns when r ended, where it is an instance that has ended and is paid
// for: the answer to its launch comes after the inventory showed it and it was
// given back, or an inventory comes that is older than its end.
func (m *Machine) closed(r Rented) (time.Time, bool) {
	if until, was := m.buried[r.Instance]; was {
		return until, true
	}
	if a := m.owner(r); a != nil && m.given[r.Instance] == nil {
		return a.Until, true
	}
	return time.Time{}, false
}

// owner returns the attempt that has or had r, or nil.
func (m *Machine) owner(r Rented) *Attempt {
	if j := m.asker(r.Launch); j != nil {
		if n := slices.IndexFunc(j.Attempts, func(a *Attempt) bool { return a.ID == r.Launch && a.Instance == r.Instance }); n >= 0 {
			return j.Attempts[n]
		}
	}
	return nil
}

// asker returns the job that the launch was for, or nil.
func (m *Machine) asker(launch string) *Job {
	dot := strings.LastIndexByte(launch, '.')
	if dot < 0 {
		return nil
	}
	return m.jobs[launch[:dot]]
}

// Unheard reports whether a job of ours asked for r and nothing was ever heard of
// it: whoever rented it was replaced before they could say so. What has ended
// meanwhile is shown in an inventory like what runs, and is booked when its end is told.
func (m *Machine) Unheard(r Rented) bool {
	_, closed := m.closed(r)
	return !closed && !m.Awaits(r.Instance) && m.asker(r.Launch) != nil
}

// shown takes an instance of an inventory that no attempt has. One that ended
// after the inventory was taken is none any more.
func (m *Machine) shown(out *Outcome, r Rented, asOf time.Time) {
	if until, closed := m.closed(r); !closed || asOf.After(until) {
		m.orphan(out, r)
	}
}

// orphan gives back an instance that no attempt owns.
func (m *Machine) orphan(out *Outcome, r Rented) {
	if _, known := m.orphans[r.Instance]; known || m.rented[r.Instance] != nil {
		return
	}
	m.orphans[r.Instance] = r
	out.Actions = append(out.Actions, Terminate{Instance: r.Instance, Why: "nobody_owns_it"})
}

// gone closes an attempt that costs nothing any more.
func (m *Machine) gone(j *Job, a *Attempt) {
	a.Phase = Gone
	m.stir = m.stir || m.reserved(a) != nil
	delete(m.attempts, a.ID)
	delete(m.rented, a.Instance)
	for j.Closed < len(j.Attempts) && !j.Attempts[j.Closed].Live() {
		c := j.Attempts[j.Closed]
		j.Settled = j.Settled.Add(c.Posted).Add(c.Rules)
		j.Closed++
	}
	if j.live() == nil {
		m.release(j)
	}
}

// regain counts as useful what the attempt before a was thought to have lost: a
// begins so many steps after the newest checkpoint that we heard of, so one was
// published whose word got lost with its machine.
func (m *Machine) regain(out *Outcome, j *Job, a *Attempt, steps int64) {
	i := slices.Index(j.Attempts, a) - 1
	if i < 0 || steps <= 0 || j.StepRate <= 0 {
		return
	}
	last := j.Attempts[i]
	end := last.Until
	if !last.Over.IsZero() {
		end = last.Over
	}
	if last.Phase != Gone || last.LostTime <= 0 || last.Started.IsZero() {
		return
	}
	speed := cmp.Or(max(last.Speed, 0), 1)
	d := min(last.LostTime, time.Duration(float64(steps)/(j.StepRate*speed)*float64(time.Hour)))
	from := end.Add(-last.LostTime)
	part := last.Cost(from.Add(d)).Sub(last.Cost(from))
	if lost := last.Uses[ledger.Lost]; lost.Cmp(part) < 0 {
		part = lost // a credit of the bill has lowered it
	}
	m.move(out, j, last, part, ledger.Lost, ledger.Useful, "restored_later")
	last.LostTime -= d
	j.SavedWork += time.Duration(float64(d) * speed)
}

// forfeit counts as lost what was settled as useful and is done again: an attempt
// begins at an earlier step than the newest checkpoint that we heard of, because
// that one was torn or is gone. Each earlier attempt gives the share of its useful
// money that its steps from there on were of all its useful steps.
func (m *Machine) forfeit(out *Outcome, j *Job, a *Attempt, from int64) {
	end := j.SavedStep // of the useful steps of the attempt that is looked at
	for i := slices.Index(j.Attempts, a) - 1; i >= 0 && end > from; i-- {
		last := j.Attempts[i]
		if last.Started.IsZero() || last.Phase != Gone {
			continue
		}
		first := min(last.First, end)
		again, all := end-max(first, from), end-first
		end = first
		useful := last.Uses[ledger.Useful]
		if again <= 0 || all <= 0 || useful.Sign() <= 0 {
			continue
		}
		part := portion(useful, money.Picos(again), money.Picos(all))
		m.move(out, j, last, part, ledger.Useful, ledger.Lost, "restored_before")
		worked := max(0, last.Kept.Sub(last.Started)-last.LostTime)
		d := share(worked, again, all)
		last.LostTime += d
		j.SavedWork = max(0, j.SavedWork-time.Duration(float64(d)*cmp.Or(max(last.Speed, 0), 1)))
	}
}

// programEnded gives the machine back and settles what becomes of the job.
func (m *Machine) programEnded(out *Outcome, b AttemptEnded) {
	j, a := m.hear(b.Attempt, b.Message)
	if a == nil || a.Phase != Working && a.Phase != Booting {
		return
	}
	a.Phase, a.Over, a.End, a.Exit = Leaving, m.now, b.Reason, b.Exit
	a.DrainBy = m.now // it is given back at once
	switch {
	case a.Started.IsZero():
		m.keep(out, j, a, ledger.StartUp, m.now)
	case b.Reason == "completed":
		j.SavedWork += time.Duration(float64(m.now.Sub(a.Kept)) * cmp.Or(max(a.Speed, 0), 1))
		m.keep(out, j, a, ledger.Useful, m.now)
	case b.Saved:
		// its last checkpoint was settled as useful when it was published; what came after it was the leaving
		m.keep(out, j, a, ledger.Idle, m.now)
	default:
		a.LostTime += m.now.Sub(a.Kept)
		m.keep(out, j, a, ledger.Lost, m.now)
	}
	if b.Step > 0 {
		j.Step = max(b.Step, j.SavedStep)
	}
	if b.Outputs != "" {
		j.Outputs = b.Outputs
	}
	m.terminate(out, a, "program_"+b.Reason)
	if j.State.Over() {
		return
	}
	if j.Exit = b.Exit; b.Error != "" || j.Ending == "" {
		j.Detail = b.Error
	}
	switch {
	case b.Reason == "completed":
		m.finish(out, j, Succeeded, "completed")
	case j.Ending != "":
		m.finish(out, j, j.Ending, j.EndingWhy)
	case b.Reason == "drained":
		m.requeue(j, cmp.Or(a.DrainWhy, "interrupted"))
	case b.Reason == "setup" && j.Failures < 2:
		j.Failures++
		m.requeue(j, "setup_failed")
	case b.Reason == "setup":
		m.finish(out, j, Failed, "setup_failed")
	case m.retries(j, b.Exit):
		j.Retries++
		m.requeue(j, "retry")
	default:
		m.finish(out, j, Failed, "exit")
	}
}

// retries reports whether a program that ended with that status is tried again:
// 75 asks for it; 137 is a kill, most often for memory, and never retried unless the user lists it.
func (m *Machine) retries(j *Job, exit int) bool {
	return j.Retries < j.Terms.MaxRetries && (exit == 75 || slices.Contains(j.Terms.RetryCodes, exit))
}

// ended takes the end of an instance and its bill.
func (m *Machine) ended(out *Outcome, b InstanceEnded) {
	r, orphan := m.orphans[b.Instance]
	delete(m.orphans, b.Instance)
	switch a := m.given[b.Instance]; {
	case a != nil:
		m.late(out, a, b)
		return
	case orphan:
		if _, paid := m.closed(r); paid { // a list showed it although it had ended
			return
		}
		m.buried[b.Instance] = b.Until
		m.bookOrphan(out, r, b)
		return
	}
	a := m.rented[b.Instance]
	if a == nil {
		return
	}
	j := m.jobs[a.Job]
	until := b.Until
	if until.After(m.now) {
		until = m.now
	}
	if until.Before(a.From) {
		until = a.From
	}
	a.Until, a.Cause, a.Notice = until, b.Cause, b.Notice
	if b.Cause == "interrupted" && a.End == "" {
		a.End = "interrupted"
	}
	a.End = cmp.Or(a.End, b.Cause)
	use := ledger.Lost
	switch {
	case !a.Over.IsZero():
		use = ledger.Idle
	case a.Started.IsZero():
		use = ledger.StartUp
	default:
		a.LostTime += max(0, until.Sub(a.Kept))
	}
	m.keep(out, j, a, use, until)
	m.level(out, j, a, use)
	m.bill(out, j, a, b.Bill)
	j.GPUServed += time.Duration(a.GPUs) * until.Sub(a.From)
	m.servedGPUs(j, a, a.From, until)
	m.sumGPUs(j, a, a.From, until)
	if o := m.offers[a.Offer]; o != nil && a.Capacity == market.Spot {
		o.Hazard.Served += until.Sub(a.From)
		if b.Cause == "interrupted" || !a.Noticed.IsZero() { // given back early, but taken all the same
			o.Hazard.Lost++
			m.failed(j, a)
			if !j.HasSaved && !a.Started.IsZero() {
				j.Wasted++
			}
		}
	}
	open := a.Over.IsZero() // the program was cut off
	newest := j.Attempt() == a
	m.gone(j, a)
	if !open || !newest || j.State.Over() {
		return
	}
	if j.Ending != "" {
		m.finish(out, j, j.Ending, j.EndingWhy)
		return
	}
	if silent := a.End == "silent" && a.Started.IsZero(); silent || b.Cause == "stopped" && a.Step <= a.First {
		if o := m.offers[a.Offer]; o != nil && silent {
			o.Backoff = m.now.Add(m.cfg.BootLimit) // where there is another, it may do better
		}
		if j.Failures++; j.Failures >= 5 {
			why := "agent_stops"
			if silent {
				why = "never_starts"
			}
			m.finish(out, j, Failed, why)
			return
		}
	}
	m.requeue(j, cmp.Or(a.End, "lost"))
}

// late takes the end of an instance that was given up for lost: what it cost
// longer than we knew was for nothing.
func (m *Machine) late(out *Outcome, a *Attempt, b InstanceEnded) {
	delete(m.given, b.Instance)
	a.GivenUp = false
	j, before, known := m.jobs[a.Job], a.Posted.Add(a.Rules), a.Until
	if b.Until.After(m.now) {
		b.Until = m.now
	}
	if b.Until.After(a.Until) {
		a.Until, a.Cause = b.Until, b.Cause
		a.LostTime += a.Until.Sub(known)
		j.GPUServed += time.Duration(a.GPUs) * a.Until.Sub(known)
		m.servedGPUs(j, a, known, a.Until)
		m.sumGPUs(j, a, known, a.Until)
	}
	m.keep(out, j, a, ledger.Lost, a.Until)
	m.level(out, j, a, ledger.Lost)
	m.bill(out, j, a, b.Bill)
	if slices.Contains(j.Attempts[:j.Closed], a) {
		j.Settled = j.Settled.Add(a.Posted.Add(a.Rules).Sub(before))
	}
}

// inventory compares what a provider shows with what we know: adopts launches
// whose answer was lost, gives back what nobody owns, and notices what is gone.
func (m *Machine) inventory(out *Outcome, b InventorySeen) {
	shown := map[string]bool{}
	for _, r := range b.Running {
		shown[r.Instance] = true
		switch a := m.attempts[r.Launch]; {
		case a == nil:
			m.shown(out, r, b.AsOf)
		case a.Phase == Asked:
			m.launched(out, r)
		case a.Instance != r.Instance:
			m.shown(out, r, b.AsOf)
		}
	}
	for _, j := range slices.Clone(m.running) {
		for _, a := range j.Attempts[j.Closed:] {
			if a.Instance != "" && a.Live() && a.Provider == b.Provider && !shown[a.Instance] && a.From.Before(b.AsOf) {
				m.ended(out, InstanceEnded{Instance: a.Instance, Until: b.AsOf, Cause: "interrupted"})
				a.GivenUp, m.given[a.Instance] = true, a
			}
		}
	}
}

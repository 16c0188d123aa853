package core

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
)

// launched takes the answer to a Launch, whether it came from the launch itself
// or from the provider's inventory.
func (m *Machine) launched(out *Outcome, r Rented) {
	a := m.attempts[r.Launch]
	if a == nil {
		if !m.closed(r) {
			m.orphan(out, r)
		}
		return
	}
	if a.Phase != Asked {
		return // said before
	}
	if m.Awaits(r.Instance) { // a provider that gives one machine twice
		m.refused(LaunchRefused{Launch: r.Launch, Reason: "error"})
		return
	}
	j := m.jobs[a.Job]
	a.Phase, a.Instance, a.From, a.Kept = Booting, r.Instance, r.From, r.From
	if a.From.After(m.now) { // a provider's clock that is ahead
		a.From, a.Kept = m.now, m.now
	}
	a.Rates = []market.Segment{{From: a.From, Rate: r.Rate}}
	m.rented[r.Instance] = a
	j.Home = a.Region
	if j.State.Over() {
		m.terminate(out, a, j.Why)
		return
	}
	m.wakeAt(j, a.From.Add(m.cfg.BootLimit))
	if at, limited := j.brokeAt(m.now); limited {
		m.wakeAt(j, at)
	}
}

// brokeAt returns when the budget of a job is used up whose machine boots: there is nothing to save.
func (j *Job) brokeAt(now time.Time) (time.Time, bool) {
	a := j.live()
	if t := j.Terms; !t.HasBudget || t.DeadlineFirst || a == nil || len(a.Rates) == 0 {
		return time.Time{}, false
	}
	d, ok := a.Rates[len(a.Rates)-1].Rate.Buys(j.Terms.Budget.Sub(j.Spent(now)))
	return now.Add(d), ok
}

// closed reports whether r is an instance that has ended and is paid for: the
// answer to its launch comes after the inventory showed it and it was given back.
func (m *Machine) closed(r Rented) bool {
	dot := strings.LastIndexByte(r.Launch, '.')
	if dot < 0 {
		return false
	}
	j := m.jobs[r.Launch[:dot]]
	return j != nil && slices.ContainsFunc(j.Attempts, func(a *Attempt) bool { return a.ID == r.Launch && a.Instance == r.Instance })
}

// orphan gives back an instance that no attempt owns.
func (m *Machine) orphan(out *Outcome, r Rented) {
	if _, known := m.orphans[r.Instance]; known || m.rented[r.Instance] != nil {
		return
	}
	m.orphans[r.Instance] = r
	out.Actions = append(out.Actions, Terminate{Instance: r.Instance, Why: "nobody_owns_it"})
}

func (m *Machine) refused(b LaunchRefused) {
	a := m.attempts[b.Launch]
	if a == nil || a.Phase != Asked {
		return
	}
	j := m.jobs[a.Job]
	if o := m.offers[a.Offer]; o != nil {
		o.Cool = m.now.Add(m.cfg.CoolOff)
	}
	a.Refused, a.Billed = cmp.Or(b.Reason, "error"), true
	m.failed(j, a)
	m.gone(j, a)
	m.requeue(j, "launch_refused")
	m.release(j)
	m.wakeAt(j, m.now.Add(m.cfg.CoolOff))
}

// gone closes an attempt that costs nothing any more.
func (m *Machine) gone(j *Job, a *Attempt) {
	a.Phase = Gone
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

// hear returns the attempt that a message is from, or nil where the message is
// stale or was heard before. Message 0 is no agent's and always heard.
func (m *Machine) hear(attempt string, message int64) (*Job, *Attempt) {
	a := m.attempts[attempt]
	if a == nil || message != 0 && message <= a.Heard {
		return nil, nil
	}
	a.Heard = max(a.Heard, message)
	return m.jobs[a.Job], a
}

func (m *Machine) started(out *Outcome, b AttemptStarted) {
	j, a := m.hear(b.Attempt, b.Message)
	if a == nil || a.Phase != Booting {
		return
	}
	a.Phase, a.Started, a.Restored = Working, m.now, b.Restored
	a.First, a.Step = b.Step, b.Step
	j.SavedStep = b.Step // what the newest verified checkpoint really holds
	if b.Restored == "" {
		j.SavedStep, j.SavedWork = 0, 0
	}
	m.keep(out, j, a, ledger.StartUp, m.now)
	restart := max(0, m.now.Sub(a.Asked)-a.Transfer)
	if j.Restart == 0 {
		j.Restart = max(restart, time.Nanosecond)
	} else {
		j.Restart = (2*j.Restart + restart) / 3
	}
	if j.Terms.IdleLimit > 0 {
		a.IdleFrom = m.now
	}
	m.pace(j, a)
	m.guardTimes(j, a)
	m.gotOn(out, j, a)
}

func (m *Machine) progressed(out *Outcome, b Progressed) {
	j, a := m.hear(b.Attempt, b.Message)
	if a == nil || a.Phase != Working {
		return
	}
	if b.Step > a.Step {
		a.Step = b.Step
		j.Failures = 0
	}
	j.Step = a.Step
	j.EpochSeen = max(j.EpochSeen, b.Epoch)
	if j.Terms.Steps == 0 && b.Total > 0 {
		j.Total = b.Total
	}
	if len(b.Metrics) > 0 {
		j.Metrics = b.Metrics
	}
	// The first steps of an attempt are slow (caches, compilation): its pace
	// counts once it has run for three restarts and made ten steps.
	if span := m.now.Sub(a.Started); span >= 3*j.restart() && a.Step-a.First >= 10 {
		j.StepRate = float64(a.Step-a.First) / span.Hours() / cmp.Or(max(a.Speed, 0), 1)
	}
	if stop, ok := j.Seen.Watch(j.Terms.Metric, b.Step, b.Metrics, b.Broken); ok && j.Ending == "" {
		state := Stopped
		if stop == policy.TargetReached {
			state = Succeeded
		}
		m.drain(out, j, a, string(stop), state)
		return
	}
	m.gotOn(out, j, a)
}

func (m *Machine) saved(out *Outcome, b CheckpointSaved) {
	j, a := m.hear(b.Attempt, b.Message)
	if a == nil || a.Started.IsZero() {
		return
	}
	captured := b.Captured
	if captured.After(m.now) {
		captured = m.now
	}
	if captured.Before(a.Kept) {
		captured = a.Kept
	}
	if !a.Over.IsZero() && captured.After(a.Over) {
		captured = a.Over
	}
	j.SavedWork += time.Duration(float64(captured.Sub(a.Kept)) * cmp.Or(max(a.Speed, 0), 1))
	m.keep(out, j, a, ledger.Useful, captured)
	j.SavedStep, j.HasSaved = max(j.SavedStep, b.Step), true
	a.Step = max(a.Step, b.Step)
	j.Step = max(j.Step, a.Step)
	a.Saves++
	a.SavedBytes += b.Uploaded
	a.LastSave = m.now
	if b.Took > 0 {
		if j.SaveCost == 0 {
			j.SaveCost = b.Took
		} else {
			j.SaveCost = (2*j.SaveCost + b.Took) / 3
		}
	}
	m.pace(j, a)
	m.gotOn(out, j, a)
}

// pace sets the checkpoint interval by what is measured: Young and Daly's, and
// never so long that what is unsaved would use up the slack.
func (m *Machine) pace(j *Job, a *Attempt) {
	if j.Terms.Interval > 0 || !j.Terms.Saves {
		return
	}
	between := policy.Hazard{}.Between()
	if o := m.offers[a.Offer]; o != nil {
		between = o.Hazard.Between()
	}
	if a.Capacity != market.Spot {
		between *= 10 // machines that cannot be taken still break
	}
	cost := cmp.Or(j.SaveCost, time.Second)
	j.Interval = policy.Interval(cost, between)
	left, _, known := j.Left(cmp.Or(max(a.Speed, 0), 1))
	p := policy.Progress{Now: m.now, Deadline: j.Terms.Deadline, Left: left, Known: known}
	if slack, ok := p.Slack(true); ok {
		room := (slack - 2*j.restart() - m.cfg.Detect) / 2
		j.Interval = max(min(j.Interval, room), min(cost, j.Interval))
	}
}

func (m *Machine) noticed(b NoticeGiven) {
	_, a := m.hear(b.Attempt, b.Message)
	if a == nil {
		return
	}
	a.Noticed, a.TakenAt = m.now, b.Until
	if o := m.offers[a.Offer]; o != nil && o.Cool.Before(b.Until) {
		o.Cool = b.Until // it would be taken again at once
	}
}

func (m *Machine) used(out *Outcome, b UsageSeen) {
	j, a := m.hear(b.Attempt, b.Message)
	if a == nil || a.Phase != Working {
		return
	}
	a.CPU += (b.CPU - a.CPU) / float64(a.CPUSeen+1)
	a.CPUSeen++
	switch {
	case b.CPU >= 0.05:
		a.IdleFrom = time.Time{}
	case a.IdleFrom.IsZero():
		a.IdleFrom = m.now
	}
	if policy.Idle(a.IdleFrom, m.now, j.Terms.IdleLimit) {
		m.drain(out, j, a, string(policy.MachineIdle), Stopped)
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
	j.Exit, j.Detail = b.Exit, b.Error
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
	if o := m.offers[a.Offer]; o != nil && a.Capacity == market.Spot {
		o.Hazard.Served += until.Sub(a.From)
		if b.Cause == "interrupted" || !a.Noticed.IsZero() { // given back early, but taken all the same
			o.Hazard.Lost++
			m.failed(j, a)
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
			o.Cool = m.now.Add(m.cfg.BootLimit) // where there is another, it may do better
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
			m.orphan(out, r)
		case a.Phase == Asked:
			m.launched(out, r)
		case a.Instance != r.Instance:
			m.orphan(out, r)
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

// over says whether a limit is used up that no machine can change any more.
func (j *Job) over(now time.Time) (plan.Reason, bool) {
	switch t := j.Terms; {
	case t.WallClock > 0 && !j.Began.IsZero() && now.Sub(j.Began) >= t.WallClock:
		return plan.TimeGone, true
	case t.GPUHours > 0 && j.GPUServed.Hours() >= t.GPUHours:
		return plan.HoursGone, true
	}
	return "", false
}

// exhausted says whether a limit of the job is used up, the grace of a drain included.
func (m *Machine) exhausted(j *Job, a *Attempt) (policy.Stop, bool) {
	t := j.Terms
	rate := a.Rates[len(a.Rates)-1].Rate
	switch {
	case t.HasBudget && !t.DeadlineFirst && j.Spent(m.now).Add(rate.Until(t.Grace)).Cmp(t.Budget) >= 0:
		return policy.BudgetSpent, true
	case t.WallClock > 0 && m.now.Sub(j.Began) >= t.WallClock:
		return policy.WallClock, true
	case t.GPUHours > 0 && a.GPUs > 0 && (j.GPUServed+time.Duration(a.GPUs)*m.now.Sub(a.From)).Hours() >= t.GPUHours:
		return policy.GPUHoursSpent, true
	}
	m.guardTimes(j, a)
	return "", false
}

// guardTimes wakes the job when the first of its limits will be reached.
func (m *Machine) guardTimes(j *Job, a *Attempt) {
	t := j.Terms
	if t.HasBudget && !t.DeadlineFirst {
		rate := a.Rates[len(a.Rates)-1].Rate
		if d, ok := rate.Buys(t.Budget.Sub(j.Spent(m.now)).Sub(rate.Until(t.Grace))); ok {
			m.wakeAt(j, m.now.Add(d))
		}
	}
	if t.WallClock > 0 {
		m.wakeAt(j, j.Began.Add(t.WallClock))
	}
	if t.GPUHours > 0 && a.GPUs > 0 {
		left := time.Duration(t.GPUHours*float64(time.Hour)) - j.GPUServed - time.Duration(a.GPUs)*m.now.Sub(a.From)
		m.wakeAt(j, m.now.Add(left/time.Duration(a.GPUs)+1))
	}
}

package core

import (
	"cmp"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/policy"
	"scrimp/internal/policy/horizon"
)

// launched takes the answer to a Launch, whether it came from the launch itself
// or from the provider's inventory.
func (m *Machine) launched(out *Outcome, r Rented) {
	a := m.attempts[r.Launch]
	if a == nil {
		if _, closed := m.closed(r); !closed {
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
	j.Without = time.Time{}
	a.Phase, a.Instance, a.From, a.Kept = Booting, r.Instance, r.From, r.From
	if a.From.After(m.now) { // a provider's clock that is ahead
		a.From, a.Kept = m.now, m.now
	}
	a.Rates = []market.Segment{{From: a.From, Rate: r.Rate}}
	if o := m.offers[a.Offer]; o != nil {
		m.sees(o, m.now, true)
	}
	m.rented[r.Instance] = a
	j.Home = a.Region
	if j.State.Over() {
		m.terminate(out, a, j.Why)
		return
	}
	m.wakeAt(j, a.From.Add(m.cfg.BootLimit+a.Transfer))
	if at, limited := j.brokeAt(m.now); limited {
		m.wakeAt(j, at)
	}
}

// sees learns that spot can be had, or not: from a quote, or from a launch where nobody
// looks. What was quoted stands until something else is told, so that it was looked
// at a look ago.
func (m *Machine) sees(o *offer, at time.Time, up bool) {
	if o.Offer.Capacity != market.Spot {
		return
	}
	if o.Record.Known && !o.Quote.Untried {
		o.Record = o.Record.See(at.Add(-max(m.cfg.Look, m.cfg.Detect)), o.Record.Up)
	}
	o.Record, o.Watch = o.Record.See(at, up), o.Watch.See(at, up)
}

func (m *Machine) refused(b LaunchRefused) {
	a := m.attempts[b.Launch]
	if a == nil || a.Phase != Asked {
		return
	}
	j := m.jobs[a.Job]
	if o := m.offers[a.Offer]; o != nil {
		o.Backoff = m.now.Add(m.cfg.CoolOff)
		if b.Reason == "no_capacity" {
			m.sees(o, m.now, false)
		}
	}
	a.Refused, a.Billed = cmp.Or(b.Reason, "error"), true
	m.failed(j, a)
	m.gone(j, a)
	m.requeue(j, "launch_refused")
	m.release(j)
	m.wakeAt(j, m.now.Add(m.cfg.CoolOff))
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
	m.regain(out, j, a, b.Step-j.SavedStep)
	m.forfeit(out, j, a, b.Step)
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
	if m.reserved(a) == nil {
		m.outbid(j)
	}
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
	m.stepRate(j, a)
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

// stepRate measures how fast j goes. The first steps of an attempt are slow (imports,
// caches, compilation): its pace counts once it has run for three restarts and made
// ten steps, and from there, as all that is left is done at that pace. Until a minute
// and ten steps of it were seen, what an earlier attempt showed holds, or all of this
// one's time.
func (m *Machine) stepRate(j *Job, a *Attempt) {
	span, steps := m.now.Sub(a.Started), a.Step-a.First
	if span < 3*j.restart() || steps < 10 {
		return
	}
	if a.Paced.IsZero() {
		a.Paced, a.PacedStep = m.now, a.Step
	}
	since := m.now.Sub(a.Paced)
	seen := since >= paceLook && a.Step-a.PacedStep >= 10
	if seen {
		span, steps = since, a.Step-a.PacedStep
	}
	if seen || j.Pace.Looks == 0 {
		j.StepRate = float64(steps) / span.Hours() / cmp.Or(max(a.Speed, 0), 1)
	}
	m.steadiness(j, a)
}

// paceLook is the least time over which a pace is measured.
const paceLook = time.Minute

// steadiness takes a look at the pace since the last one.
func (m *Machine) steadiness(j *Job, a *Attempt) {
	if j.PaceFrom.Before(a.Started) { // its first steps are behind it
		j.PaceFrom, j.PaceStep = m.now, a.Step
		return
	}
	if span := m.now.Sub(j.PaceFrom); span >= paceLook && a.Step > j.PaceStep {
		j.Pace = j.Pace.See(float64(a.Step-j.PaceStep)/span.Hours()/cmp.Or(max(a.Speed, 0), 1), span)
		j.PaceFrom, j.PaceStep = m.now, a.Step
	}
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
		if o.Watch.Known && o.Watch.Up { // at the period's present age, not in the mean
			between = horizon.Public.Between(o.Watch.At(m.now))
		}
		if most := o.Offer.MaxLifetime; most > 0 {
			between = min(between, most)
		}
	}
	if a.Capacity != market.Spot {
		between *= 10 // machines that cannot be taken still break
	}
	cost := cmp.Or(j.SaveCost, time.Second)
	j.Interval = policy.Interval(cost, between)
	left, _, known := j.Left(cmp.Or(max(a.Speed, 0), 1))
	p := policy.Progress{Now: m.now, Deadline: j.Terms.Deadline, Left: left, Known: known}
	if slack, ok := p.Slack(true); ok && slack >= 0 { // what is late anyway saves as if there were no deadline
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
	if o := m.offers[a.Offer]; o != nil && o.Backoff.Before(b.Until) {
		o.Backoff = b.Until // it would be taken again at once
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

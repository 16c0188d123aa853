package core

import (
	"time"

	"scrimp/internal/market"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
)

// review looks at a job that holds a machine: whether it must stop, and whether
// it should be elsewhere.
func (m *Machine) review(out *Outcome, j *Job) {
	a := j.live()
	if a == nil {
		return
	}
	if a.Asking || a.Phase == Asked {
		return
	}
	j.Wake = time.Time{} // as in try
	switch {
	case a.Phase == Booting:
		limit := a.From.Add(m.cfg.BootLimit + a.Transfer)
		if !m.now.Before(limit) {
			a.End = "silent"
			m.terminate(out, a, "boot_limit")
			return
		}
		if at, limited := j.brokeAt(m.now); limited {
			if !at.After(m.now) {
				a.End = "moved"
				m.terminate(out, a, string(policy.BudgetSpent))
				return
			}
			m.wakeAt(j, at)
		}
		m.wakeAt(j, limit)
	case a.Draining || a.Phase == Leaving:
		if m.now.Before(a.DrainBy) {
			m.wakeAt(j, a.DrainBy)
			return
		}
		m.terminate(out, a, "drain_overdue")
		return
	}
	if m.limits(out, j, a) || !a.Noticed.IsZero() || m.awaits(j) {
		return // it is saving, or asking
	}
	if m.expires(out, j, a) {
		return
	}
	d, ok := m.decide(out, j)
	switch {
	case !ok:
	case d.Probe != "":
		m.look(out, j, d.Probe)
	case d.Take == a.Offer:
		m.wakeAt(j, d.Again)
		m.rungAt(j)
		if at, ok := m.expiry(a, j); ok && a.Phase == Working {
			m.wakeAt(j, at)
		}
	case a.Phase == Working && d.Take == "" && d.Why == plan.OutOfMoney:
		j.Detail = missing(d, j.Terms.Currency)
		m.drain(out, j, a, string(gone[d.Why]), Stopped)
	case a.Phase == Working:
		j.Bound = d.Take
		m.drain(out, j, a, "move_"+string(d.Why), "")
	default: // it has nothing to save
		a.End = "moved"
		m.terminate(out, a, "move_"+string(d.Why))
	}
}

// expiry is when a machine with a longest lifetime is left: early enough to save
// twice, for the end is known in advance.
func (m *Machine) expiry(a *Attempt, j *Job) (time.Time, bool) {
	o := m.offers[a.Offer]
	if o == nil {
		return time.Time{}, false
	}
	margin := j.Terms.Grace + 2*j.SaveCost + m.cfg.Detect
	if o.Offer.Reserved.Count > 0 {
		return o.Offer.Reserved.Until.Add(-margin), true
	}
	if o.Offer.MaxLifetime <= 0 {
		return time.Time{}, false
	}
	if margin >= o.Offer.MaxLifetime/2 {
		return time.Time{}, false // it would be left as soon as it works
	}
	return a.From.Add(o.Offer.MaxLifetime - margin), true
}

// expires leaves a machine whose lifetime ends, in time to lose no work.
func (m *Machine) expires(out *Outcome, j *Job, a *Attempt) bool {
	at, ok := m.expiry(a, j)
	if !ok || a.Phase != Working || m.now.Before(at) || m.replays && len(m.replay) > 0 && m.replay[0].Job == j.ID {
		return false
	}
	m.drain(out, j, a, "lifetime_ends", "")
	return true
}

// look asks about an offer that nobody has tried; the answer brings the job back here.
func (m *Machine) look(out *Outcome, j *Job, offer market.OfferID) {
	j.Looks++
	j.Looked, j.Asks = m.now, offer
	out.Actions = append(out.Actions, Look{Job: j.ID, Offer: offer, Count: j.Looks})
	m.wakeAt(j, m.now.Add(m.answerTime()))
}

// answerTime is how long an answer to a look is waited for, and how long it counts.
func (m *Machine) answerTime() time.Duration { return max(m.cfg.Detect, time.Nanosecond) }

// awaits reports whether j waits for the answer to a look.
func (m *Machine) awaits(j *Job) bool {
	if j.Asks == "" || m.now.Sub(j.Looked) >= m.answerTime() {
		return false
	}
	o := m.offers[j.Asks]
	return o != nil && (o.Quote.Untried || o.Quote.At.Before(j.Looked))
}

// limits ends a job whose budget of any kind is used up, and reports whether it did.
func (m *Machine) limits(out *Outcome, j *Job, a *Attempt) bool {
	if a.Phase != Working || a.Draining {
		return false
	}
	why, stop := m.exhausted(j, a)
	if stop {
		m.drain(out, j, a, string(why), Stopped)
	}
	return stop
}

// gotOn looks at a job that made progress: its limits, and whether it turned
// out to be so slow that the guard holds. The market is as it was, so nothing
// else can have changed.
func (m *Machine) gotOn(out *Outcome, j *Job, a *Attempt) {
	if m.replays && len(m.replay) > 0 && m.replay[0].Job == j.ID {
		m.review(out, j) // a release that decided here wrote this log
		return
	}
	if m.limits(out, j, a) || a.Draining || !a.Noticed.IsZero() || a.Capacity != market.Spot || a.Phase != Working {
		return
	}
	if at, ok := m.progress(j, j.Last.Speed).GuardAt(true); ok {
		m.wakeAt(j, at)
	}
	if m.strained(j, a) {
		m.wakeAt(j, m.now.Add(m.cfg.Detect))
	}
}

package core

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/plan"
	"scrimp/internal/policy"
)

// decide takes the decision for j, or in replay the recorded one.
// ok is false where the log has none: then none was taken.
func (m *Machine) decide(out *Outcome, j *Job) (d plan.Decision, ok bool) {
	if m.replays {
		if len(m.replay) == 0 || m.replay[0].Job != j.ID {
			return d, false
		}
		r := m.replay[0]
		d, m.replay = r.Decision, m.replay[1:]
		if r.SameRejected {
			d.Rejected = j.Last.Rejected
		}
	} else if why, over := j.over(m.now); over {
		d = plan.Decision{Why: why, Mode: policy.Patient}
	} else {
		v := m.view(j)
		v.Reserved = m.shares(j)
		d = m.mind.Decide(v, m.class(j))
	}
	if slices.Equal(d.Rejected, m.rejected) {
		d.Rejected = m.rejected // a million jobs that wait share the list
	} else {
		m.rejected = d.Rejected
	}
	record := Decision{Job: j.ID, Decision: d, Version: plan.Version}
	if same(d, j.Last) {
		record.Rejected, record.SameRejected = nil, true
	}
	out.Decisions = append(out.Decisions, record)
	j.Last = d
	j.Decided = m.now
	j.foresee(d, m.now)
	return d, true
}

func same(a, b plan.Decision) bool {
	return len(a.Rejected) > 0 && slices.Equal(a.Rejected, b.Rejected)
}

// view is j as a decision sees it.
func (m *Machine) view(j *Job) plan.Job {
	v := plan.Job{Need: j.Terms.Need, Rule: m.cfg.Policy, DeadlineFirst: j.Terms.DeadlineFirst, Progress: m.progress(j, 1),
		ID: j.ID, CheckpointRegion: j.Home, Transfer: j.Terms.Transfer, EgressCost: j.Terms.Carry, MigratingTo: j.Bound, UnsavedLosses: j.Wasted, Probes: j.Looks, Probed: j.Asks != "" && m.now.Sub(j.Looked) < 2*m.answerTime(),
	}
	v.GPURoom, v.GPULimited = m.gpuRoom(j)
	if len(v.Need.Ladder) > 0 {
		v.Open, _ = m.open(j)
	}
	v.Need.Critical = v.Need.Critical || j.Terms.Priority >= 2
	if a := j.live(); a != nil && (a.Phase == Working || a.Phase == Booting) {
		v.Held, v.Variant = a.Offer, a.Variant
		if len(a.Rates) > 0 {
			v.HeldRate = a.Rates[len(a.Rates)-1].Rate
		}
		if a.Phase == Booting {
			v.Warming = max(1, j.restart()+a.Transfer-m.now.Sub(a.Asked))
		}
	}
	v.Unsaving, v.Unsaved = !j.Terms.Saves && !j.HasSaved, m.unsaved(j)
	if j.Terms.HasBudget {
		v.Limited, v.Left, v.Grace = true, j.Terms.Budget.Sub(j.Spent(m.now)), j.Terms.Grace
		v.Rough = j.Rough()
		v.Sooner = j.Terms.Metric.HasGoal || j.Terms.Metric.Patience > 0
	}
	return v
}

// open says which rungs of its ladder j may use, and when that changes next.
func (m *Machine) open(j *Job) (open []bool, next time.Time) {
	without := time.Duration(0)
	if !j.Without.IsZero() {
		without = m.now.Sub(j.Without)
	}
	open, next = plan.Open(j.Terms.Need.Ladder, j.Stands, m.now, without)
	if a := j.live(); a != nil { // where it is now it may be, and before
		for i := range min(a.Rung, len(open)) {
			open[i] = open[i] || i == a.Rung-1
		}
	}
	return open, next
}

// rungAt wakes the job when another rung of its ladder opens.
func (m *Machine) rungAt(j *Job) {
	if len(j.Terms.Need.Ladder) > 0 {
		_, next := m.open(j)
		m.wakeAt(j, next)
	}
}

// failed counts a loss or a refusal on the attempt's rung.
func (m *Machine) failed(j *Job, a *Attempt) {
	ladder := j.Terms.Need.Ladder
	if a.Rung < 1 || a.Rung > len(ladder) || ladder[a.Rung-1].Failures == 0 {
		return
	}
	for len(j.Stands) < len(ladder) {
		j.Stands = append(j.Stands, plan.FallbackState{})
	}
	s, r := &j.Stands[a.Rung-1], ladder[a.Rung-1]
	if s.Failures++; s.Failures >= r.Failures {
		*s = plan.FallbackState{Rests: m.now.Add(r.Rest())}
	}
}

// unsaved is the work that the machine of j has done since the newest checkpoint, on speed 1.
func (m *Machine) unsaved(j *Job) time.Duration {
	a := j.live()
	switch {
	case a == nil || a.Phase != Working:
		return 0
	case j.Total > 0 && j.StepRate > 0:
		return time.Duration(float64(max(0, a.Step-j.SavedStep)) / j.StepRate * float64(time.Hour))
	case j.Terms.Work > 0 && j.Total > 0:
		return share(j.Terms.Work, min(max(0, a.Step-j.SavedStep), j.Total), j.Total)
	}
	return time.Duration(float64(max(0, m.now.Sub(a.Kept))) * cmp.Or(max(a.Speed, 0), 1))
}

// progress is what the deadline policy looks at, with the work on a machine of that speed.
func (m *Machine) progress(j *Job, speed float64) policy.Progress {
	left, done, known := j.Left(speed)
	restart := j.restart() + j.SaveCost + j.Terms.Transfer
	return policy.Progress{
		Now: m.now, Began: j.begin(), Deadline: j.Terms.Deadline, Left: left, Done: done, Known: known,
		Restart: restart, Reserve: time.Duration(m.cfg.Reserve)*restart + m.cfg.Spare, Detect: m.cfg.Detect, Look: m.cfg.Look,
		Doubt: j.Pace.Doubt(left, j.Terms.Promise),
	}
}

// class is that of the offers for what j asks.
func (m *Machine) class(j *Job) *plan.Class {
	if j.class == nil || j.class.Listings() != m.listings {
		key := j.Terms.Need.Key()
		if m.options[key] == nil {
			if len(m.options) >= mostGroups {
				clear(m.options)
			}
			m.options[key] = plan.NewClass(m.listings, j.Terms.Need)
		}
		j.class = m.options[key]
	}
	return j.class
}

// list lists what is for sale anew, for decisions.
func (m *Machine) list() {
	m.listings, m.options = &plan.Listings{}, map[string]*plan.Class{}
	for _, o := range m.sale {
		if o.Offer.Currency == m.cfg.Currency {
			m.listings.Add(&o.Listing)
		}
	}
}

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Decide decides about j, and records the decision if it changes something.
func (dc *Decider) Decide(j *state.Job) plan.Decision {
	d := dc.Weighs(j)
	if d.Why != plan.NextRound || j.Decided().IsZero() { // otherwise it is decided in a moment
		dc.Decided(j, d)
	}
	return d
}

// Weighs returns what would be decided for j now.
func (dc *Decider) Weighs(j *state.Job) plan.Decision {
	var d plan.Decision
	progress := dc.Progress(j, 1)
	if why, spent := admission.TimeLimitReached(j, dc.Now()); spent {
		d = plan.Decision{Why: why, Mode: policy.Patient}
	} else if opens, closed := dc.Closed(j); closed {
		d = plan.Decision{Why: plan.Closed, Mode: policy.Patient, Again: opens}
	} else {
		v := dc.viewAt(j, progress)
		v.Reserved = dc.market.reservations(j)
		d = dc.meanwhile(j, dc.bids.bids(j, &v, dc.market.Planner.Decide(v, dc.market.Class(j))))
		d.ForAll(dc.nodesOf(j), j.Terms().Most(), j.Terms().Budget.Sub(j.Spent(dc.Now())))
	}
	dc.Out.Decided++
	dc.market.WantsTable(j, d.Table)
	look := LookoutOf(j)
	look.TableKey, look.Guard = tableKeyOf(progress), time.Time{}
	if d.Speed > 0 && d.Speed != 1 {
		progress = dc.Progress(j, d.Speed)
	}
	if when, ok := progress.GuardAt(true); ok {
		look.Guard = when
	}
	return d
}

// Decided records a decision that changes something: what is taken and why, or why nothing else is. The expectation
// of that time stands until the next decision.
func (dc *Decider) Decided(j *state.Job, d plan.Decision) {
	if d.Expect != nil && !d.Expect.Whole() {
		panic(fmt.Sprintf("core: the expectation of job %s is not a number: %+v", j.ID(), *d.Expect))
	}
	last := j.Last()
	foreseen := dc.Foresees(j, d)
	if !j.Decided().IsZero() && foreseen == nil && (same(&d, &last) || dc.stays(j, &d, &last)) {
		return
	}
	f := state.Decided{Job: j.ID(), Decision: d, Version: plan.Version, Foreseen: foreseen}
	f.Decision.Again, f.Decision.Retry, f.Decision.Unschedulable, f.Decision.Table = time.Time{}, time.Time{}, false, nil
	dc.State.Apply(dc.Event, f)
	if len(d.Rejected) > 0 && slices.Equal(d.Rejected, last.Rejected) && slices.Equal(d.Counts, last.Counts) {
		f.Decision.Rejected, f.Decision.Counts, f.SameRejected = nil, nil, true // the log has them
	}
	dc.Out.Facts = append(dc.Out.Facts, f)
}

// stays reports whether j keeps what it has, as before. The reasons against other offers then change with each
// quote, so they are recorded once an hour, for a few jobs a minute, and not while a table is missing.
func (dc *Decider) stays(j *state.Job, d, last *plan.Decision) bool {
	if d.Take == "" || d.Take != last.Take || d.Variant != last.Variant || d.Why != plan.Stays ||
		last.Why != plan.Stays || d.Speed != last.Speed || d.Probe != last.Probe {
		return false
	}
	switch {
	case !d.TableSince.IsZero():
		return true
	case d.Mode != last.Mode:
		return false
	case dc.Now().Sub(j.Decided()) < time.Hour:
		return true
	}
	if dc.Now().Sub(dc.stayedAt) >= time.Minute {
		dc.stayedAt, dc.stayed = dc.Now(), 0
	}
	dc.stayed++
	return dc.stayed > StaysAMinute
}

// StaysAMinute is how many staying jobs may record their reasons in a minute, some 40 KB.
const StaysAMinute = 64

// same reports whether two decisions do the same for the same reasons, in any order. Prices and expectations move
// with every quote, and change nothing by themselves.
func same(a, b *plan.Decision) bool {
	if a.Take != b.Take || a.Variant != b.Variant || a.Why != b.Why || a.Mode != b.Mode || a.Probe != b.Probe ||
		a.Speed != b.Speed {
		return false
	}
	if (a.Budget == nil) != (b.Budget == nil) || (a.Expect == nil) != (b.Expect == nil) ||
		a.TableSince.IsZero() != b.TableSince.IsZero() || !slices.Equal(a.Counts, b.Counts) {
		return false
	}
	return len(a.Rejected) == len(b.Rejected) && !slices.ContainsFunc(a.Rejected, func(x plan.Rejection) bool {
		return !slices.ContainsFunc(b.Rejected, func(y plan.Rejection) bool { return x.Offer == y.Offer && x.Why == y.Why })
	})
}

// Foresees returns the expected cost of a job at its first decision that states one: the cost so far plus the
// expected cost of the remaining work. A decision by its budget alone states the lowest cost of the rest. It
// returns nil if there is nothing new.
func (dc *Decider) Foresees(j *state.Job, d plan.Decision) *money.Amount {
	if j.Foreseen() != nil {
		return nil
	}
	rest, known := money.Amount{}, false
	if e := d.Expect; e != nil {
		if best := plan.Least(e); best >= 0 {
			rest, known = money.Estimated(best)
		}
	}
	if !known && d.Budget != nil {
		rest, known = d.Budget.Needs, true
	}
	if !known {
		return nil
	}
	all := j.Spent(dc.Now()).Add(rest)
	return &all
}

// View returns j as a decision sees it.
func (dc *Decider) View(j *state.Job) plan.Job { return dc.viewAt(j, dc.Progress(j, 1)) }

// viewAt is View with the job's progress.
func (dc *Decider) viewAt(j *state.Job, progress policy.Progress) plan.Job {
	t := j.Terms()
	v := plan.Job{
		Need: t.Need, Rule: dc.Config().Policy, DeadlineFirst: t.DeadlineFirst, Progress: progress, ID: j.ID(),
		CheckpointRegion: j.CheckpointRegion(), Transfer: t.Transfer, EgressCost: t.Carry, Egress: t.Egress,
		MigratingTo: j.MigratingTo(), UnsavedLosses: j.UnsavedLosses(), TableSince: j.Last().TableSince,
		Probes: j.Probes(), Probed: j.ProbeOf() != "" && dc.Now().Sub(j.Probed()) < 2*dc.AnswerTime(j.ProbeOf()),
	}
	if asked := j.Asked(); asked != nil {
		v.Pending = asked.Offer()
	}
	v.GPURoom, v.GPULimited = dc.queue.GPURoom(j)
	v.RateRoom, v.RateLimited = dc.queue.RateRoom(j, nil)
	if len(v.Need.Ladder) > 0 {
		v.Open, _ = dc.open(j)
	}
	v.Need.Critical = v.Need.Critical || t.Priority >= 2
	v.Crowded = t.Need.Parallel > 0 && t.Most() == 1 && dc.crowded(j)
	if a := j.Live(); a != nil && a.Task() != state.Ended && !a.Releasing() {
		v.Held, v.Variant, v.HeldRate = a.Offer(), a.Variant(), a.Lead().Rate()
		v.HeldUnits = unitsOf(a.Portion(), t.Need.RequirementsOf(a.Variant()))
		if a.Task() != state.TaskRunning {
			v.Warming = max(1, j.Restart()+a.Transfer()-dc.Now().Sub(a.Requested()))
		}
	}
	v.Unsaving, v.Unsaved = !t.Saves && !j.HasSaved(), dc.admission.Unsaved(j)
	if t.HasBudget {
		leaving, held := dc.admission.MinimumDue(j)
		v.Limited, v.Left, v.Grace = true, t.Budget.Sub(j.Spent(dc.Now())).Sub(leaving), admission.LastSave(j)
		v.DueElsewhere = held
		v.Rough = j.Rough()
		v.Sooner = dc.admission.MayEndSooner(j)
	}
	nodes := dc.nodesOf(j)
	if nodes > 1 {
		v.Losses = dc.State.Gangs().Times(nodes, 0)
	}
	v.PerMachine(nodes, t.Most())
	return v
}

// open returns which rungs of its ladder j may use, and when that changes next.
func (dc *Decider) open(j *state.Job) (open []bool, next time.Time) {
	without := time.Duration(0)
	if !j.UnplacedSince().IsZero() {
		without = dc.Now().Sub(j.UnplacedSince())
	}
	open, next = plan.Open(j.Terms().Need.Ladder, j.Fallback(), dc.Now(), without)
	if a := j.Live(); a != nil { // it may stay on its current rung, and use earlier ones
		for i := range min(a.Rung(), len(open)) {
			open[i] = open[i] || i == a.Rung()-1
		}
	}
	return open, next
}

// RungAt wakes the job when another rung of its ladder opens.
func (dc *Decider) RungAt(j *state.Job) {
	if len(j.Terms().Need.Ladder) > 0 {
		_, next := dc.open(j)
		dc.WakeAt(j, next)
	}
}

// Failed counts a loss or a refusal on a rung of the job's ladder, from 1; 0 is no rung.
func (dc *Decider) Failed(j *state.Job, rung int) {
	ladder := j.Terms().Need.Ladder
	if rung < 1 || rung > len(ladder) || ladder[rung-1].Failures == 0 {
		return
	}
	var s plan.FallbackState
	if list := j.Fallback(); rung <= len(list) {
		s = list[rung-1]
	}
	if s.Failures++; s.Failures >= ladder[rung-1].Failures {
		s = plan.FallbackState{Rests: dc.Now().Add(ladder[rung-1].Rest())}
	}
	dc.Fact(state.RungFailed{Job: j.ID(), Rung: rung - 1, State: s})
}

// Progress is the job's progress for the deadline policy, with the work on a machine of that speed.
func (dc *Decider) Progress(j *state.Job, speed float64) policy.Progress {
	t, cfg := j.Terms(), dc.Config()
	detect, grant := dc.market.detects(j)
	left, done, known := j.Left(speed)
	restart := j.Restart() + j.SaveCost() + t.Transfer
	return policy.Progress{
		Now: dc.Now(), Began: j.Begin(), Left: left, Done: done, Known: known, Restart: restart,
		Deadline:  t.Window.Deadline(dc.Now(), t.Deadline, restart),
		Uncounted: !known && j.Anew(),
		Reserve:   quantity.Add(quantity.Times(restart, cfg.Reserve), cfg.Spare+grant), Detect: detect, Poll: cfg.Poll,
		Margin: j.Margin(left, t.Promise),
	}
}

// Interval is the current time between checkpoints: that of Young and Daly with measured values, but never so long
// that unsaved work would use up the slack. Without a machine it is that of the newest attempt. 0 leaves it to the
// program.
func (dc *Decider) Interval(j *state.Job) time.Duration {
	t, a := j.Terms(), j.Attempt()
	if t.Interval > 0 || !t.Saves || a == nil {
		return t.Interval
	}
	cost := cmp.Or(j.SaveCost(), time.Second)
	interval := policy.Interval(cost, dc.between(a))
	left, _, known := j.Left(cmp.Or(max(a.Speed(), 0), 1))
	until := t.Window.Deadline(dc.Now(), t.Deadline, j.Restart())
	p := policy.Progress{Now: dc.Now(), Deadline: until, Left: left, Known: known}
	if slack, ok := p.Slack(true); ok && slack >= 0 { // a job that is late anyway saves as if it had no deadline
		room := (slack - 2*j.Restart() - dc.market.TimingOf(a.Machine()).Detect) / 2
		interval = max(min(interval, room), min(cost, interval))
	}
	return interval
}

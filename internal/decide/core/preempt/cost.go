package preempt

import (
	"cmp"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// victim is a job that may be preempted, with the expected cost.
type victim struct {
	job     *state.Job
	attempt *state.Attempt
	lost    time.Duration // work that it repeats
	restart time.Duration // time of its next start
	cost    money.Amount  // both at the present price of its seat
}

// compare orders victims by cost, then the less urgent job first, then the younger one.
func (v *victim) compare(o *victim) int {
	return cmp.Or(v.cost.Cmp(o.cost), cmp.Compare(v.job.Terms().Priority, o.job.Terms().Priority),
		cmp.Compare(o.job.Order(), v.job.Order()))
}

// victims returns the jobs that may be preempted now for j, the cheapest first, and when the next one has had its
// minimum run; zero: none will.
func (p *Preempter) victims(j *state.Job) (list []*victim, next time.Time) {
	for _, k := range p.State.Running() {
		a := k.Live()
		if k.Terms().Priority >= critical || !placement.Movable(k, a) || !mayLeave(k) {
			continue
		}
		if at := startedAll(a).Add(p.Config().MinimumRun()); at.After(p.Now()) && !p.Faults.Hasty {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			continue
		}
		v := p.priced(k, a)
		if p.Faults.Costly || p.saves(v) && p.inTime(v, j) && p.affords(v) {
			list = append(list, v)
		}
	}
	return list, next
}

// mayLeave reports whether a job may be preempted at all. Its file may forbid it. A session would lose what its user
// has open, and a job that saves nothing would start from scratch again and again.
func mayLeave(k *state.Job) bool {
	t := k.Terms()
	return !t.Unpreemptible && t.Session == "" && !k.Pinned() && (t.Saves || k.Preempted() == 0)
}

// startedAll returns when the last program of an attempt started.
func startedAll(a *state.Attempt) (t time.Time) {
	for _, k := range a.Tasks() {
		if k.Started().After(t) {
			t = k.Started()
		}
	}
	return t
}

// priced returns the victim with its expected cost: (lost + restart) · price of its seats. For example, 6 minutes
// since its checkpoint and a restart of 4 minutes on a machine of $3 an hour cost $0.50.
// TestPriced_IsWorkSinceCheckpointAndRestartAtSeatPrice.
func (p *Preempter) priced(k *state.Job, a *state.Attempt) *victim {
	v := &victim{job: k, attempt: a, restart: k.Restart() + k.SaveCost(), lost: placement.Repeats(k, a, p.Now())}
	v.cost = a.Rate().Until(quantity.Add(v.lost, v.restart))
	return v
}

// saves reports whether the critical job gains more than the preemption costs, in the time of the victim's seat: it
// gets the seat earlier by what the victim still needs of it, less the victim's save. A victim of unknown end counts
// as one that runs for long.
func (p *Preempter) saves(v *victim) bool {
	rest, known := placement.HoldsFor(v.job, v.attempt, p.Now())
	if !known {
		return true
	}
	return rest-v.job.SaveCost() > quantity.Add(v.lost, v.restart)
}

// inTime reports whether the victim still meets its deadline and its wall-clock limit if it gets a seat only after the
// critical job has ended. If either time is unknown, a job with such a limit is no victim.
func (p *Preempter) inTime(v *victim, j *state.Job) bool {
	t := v.job.Terms()
	if t.Deadline.IsZero() && t.WallClock == 0 {
		return true
	}
	left, _, known := v.job.Left(v.attempt.Speed())
	others, _, ends := j.Left(v.attempt.Speed())
	if !known || !ends {
		return false
	}
	wait := quantity.Add(t.Grace, quantity.Add(j.Restart(), others))
	needs := quantity.Add(wait, quantity.Add(v.restart, left)) // left counts from its checkpoint
	if t.WallClock > 0 && quantity.Add(admission.WallClock(v.job, p.Now()), needs) > t.WallClock {
		return false
	}
	if t.Deadline.IsZero() {
		return true
	}
	g := p.decider.Progress(v.job, cmp.Or(max(v.attempt.Speed(), 0), 1))
	needs = quantity.Add(needs, g.Restart+g.Reserve+g.Detect+g.Margin)
	return !g.Deadline.IsZero() && g.Deadline.Sub(p.Now()) >= needs
}

// affords reports whether the victim's budget has room for the cost of its preemption besides its remaining work.
func (p *Preempter) affords(v *victim) bool {
	t := v.job.Terms()
	if !t.HasBudget || t.DeadlineFirst {
		return true
	}
	needs := v.cost
	if left, _, known := v.job.Left(v.attempt.Speed()); known {
		needs = needs.Add(v.attempt.Rate().Until(left))
	}
	return p.admission.Charged(v.job).Add(needs).Cmp(t.Budget) <= 0
}

package admission

import (
	"cmp"
	"fmt"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// MostRate is the highest price at which a launch may be granted: a quarter above the decided price, and never
// above the job's own limit, if it has one. The provider compares it with its current price, so that no money is
// spent on an outdated price, whatever made it outdated. An offer that is free must still be free.
//
// Worked example: decided at $2.00 an hour, the launch is refused above $2.50.
func MostRate(limit, decided money.Rate) money.Rate {
	most := decided + decided/4
	if most < decided { // overflow
		most = decided
	}
	if most = max(1, most); limit > 0 {
		return min(most, limit)
	}
	return most
}

// LastSave is the time to save and end, which every budget keeps back.
func LastSave(j *state.Job) time.Duration { return j.Terms().Grace + j.SaveCost() }

// unbilled bounds the attempts that MinimumDue checks: the bills of earlier ones came long ago.
const unbilled = 16

// MinimumDue returns what minimum charges still bill for machines of j even if each ends now: for those that are
// ending or have ended (leaving), and for those that it holds (held). Spent includes neither yet. For a shared
// machine, the job that has it when it ends pays.
func (ad *Admission) MinimumDue(j *state.Job) (leaving, held money.Amount) {
	kept := j.Live()
	if kept != nil && (kept.Task() == state.Ended || kept.Releasing()) {
		kept = nil
	}
	list := j.Attempts()
	for _, a := range list[max(0, len(list)-unbilled):] {
		for _, k := range a.Tasks() {
			l, i := ad.State.Listing(k.Machine().Offer), ad.State.Instance(k.Instance())
			if l == nil || k.From().IsZero() || k.Billed() || k.Beside() || k.Machine().Prepaid || i != nil && i.Shared() {
				continue
			}
			until := k.Until()
			if k.Live() {
				until = ad.Now()
			}
			switch due := k.Rate().Until(max(0, k.Rented().Add(l.Offer().Billing.Minimum).Sub(until))); a {
			case kept:
				held = held.Add(due)
			default:
				leaving = leaving.Add(due)
			}
		}
	}
	return leaving, held
}

// Charged is what j has spent, plus the minimum charges of machines that are ending or have ended.
func (ad *Admission) Charged(j *state.Job) money.Amount {
	leaving, _ := ad.MinimumDue(j)
	return j.Spent(ad.Now()).Add(leaving)
}

// ending is how long a machine may go on costing after its termination was requested: providers take seconds.
const ending = 30 * time.Second

// BrokeAt returns when the machine of a job has to be terminated so that it costs no more than the budget: while it
// saves, however long that takes, and while it boots. A machine that boots has nothing to save and nobody who could end
// the program early, so its budget pays for the termination, too.
func (ad *Admission) BrokeAt(j *state.Job) (time.Time, bool) {
	t, a := j.Terms(), j.Live()
	if !t.HasBudget || t.DeadlineFirst || a == nil {
		return time.Time{}, false
	}
	left := t.Budget.Sub(ad.Charged(j))
	if !a.Draining() && a.Task() != state.TaskRunning && a.Task() != state.Ended {
		left = left.Sub(a.Rate().Until(ending))
	}
	d, ok := a.Rate().Buys(left)
	return ad.Now().Add(d), ok
}

// Strained reports whether, since the last decision, the remaining work on the machine of j costs more than is left
// of a binding budget.
func (ad *Admission) Strained(j *state.Job, a *state.Attempt) bool {
	t := j.Terms()
	if !t.HasBudget || t.DeadlineFirst || j.Last().Budget != nil {
		return false
	}
	speed := cmp.Or(max(a.Speed(), 0), 1)
	left, _, known := j.Left(speed)
	left -= quantity.Over(ad.Unsaved(j), speed)
	return known && a.Rate().Until(max(0, left)+LastSave(j)).Cmp(t.Budget.Sub(ad.Charged(j))) > 0
}

// Missing explains in a sentence why the budget is insufficient.
func Missing(d plan.Decision, in money.Currency) string {
	if d.Budget == nil {
		return ""
	}
	return fmt.Sprintf("the rest of the work needs about %s on %s, the cheapest offer, and %s of the budget are left",
		money.Short(d.Budget.Needs, in), d.Budget.On, money.Short(d.Budget.Left, in))
}

// Broke explains in a sentence that the remaining budget starts no machine, or returns "" if d is refused for
// another reason.
func (ad *Admission) Broke(j *state.Job, d plan.Decision) string {
	if d.Why != plan.BudgetGone {
		return ""
	}
	t := j.Terms()
	text := fmt.Sprintf("a machine that starts, saves once and is paid for costs more than the %s that are left of "+
		"the budget", money.Short(t.Budget.Sub(ad.Charged(j)), t.Currency))
	if due, _ := ad.MinimumDue(j); due.Sign() > 0 {
		text += fmt.Sprintf(" after %s that minimum charges still bill", money.Short(due, t.Currency))
	}
	return text
}

// TimeLimitReached returns the limit of j, wall clock or GPU-hours, that is used up whatever machine j gets. The budget
// depends on the machine: Exhausted checks it.
func TimeLimitReached(j *state.Job, now time.Time) (plan.Reason, bool) {
	switch t := j.Terms(); {
	case t.WallClock > 0 && !j.Began().IsZero() && WallClock(j, now) >= t.WallClock:
		return plan.TimeGone, true
	case t.GPUHours > 0 && j.GPUServed().Hours() >= t.GPUHours:
		return plan.HoursGone, true
	}
	return "", false
}

// Exhausted returns the limit of the job that is used up, including the grace of a drain.
func (ad *Admission) Exhausted(j *state.Job, a *state.Attempt) (policy.Stop, bool) {
	t := j.Terms()
	switch {
	case t.HasBudget && !t.DeadlineFirst && ad.Charged(j).Add(a.Rate().Until(LastSave(j))).Cmp(t.Budget) >= 0:
		return policy.BudgetSpent, true
	case t.WallClock > 0 && WallClock(j, ad.Now()) >= t.WallClock:
		return policy.WallClock, true
	case t.GPUHours > 0 && a.GPUs() > 0 &&
		quantity.Add(j.GPUServed(), ad.gpusSince(a)).Hours() >= t.GPUHours:
		return policy.GPUHoursSpent, true
	}
	ad.GuardTimes(j, a)
	return "", false
}

// gpusSince is the GPU time of the machines that a still has. It counts as served when they end.
func (ad *Admission) gpusSince(a *state.Attempt) (d time.Duration) {
	for _, k := range a.Tasks() {
		if k.Live() {
			d = quantity.Add(d, quantity.Times(ad.Now().Sub(k.From()), k.GPUs()))
		}
	}
	return d
}

// GuardTimes wakes the job when the first of its limits will be reached.
func (ad *Admission) GuardTimes(j *state.Job, a *state.Attempt) {
	t := j.Terms()
	if t.HasBudget && !t.DeadlineFirst {
		rate := a.Rate()
		if d, ok := rate.Buys(t.Budget.Sub(ad.Charged(j)).Sub(rate.Until(LastSave(j)))); ok {
			ad.WakeAt(j, ad.Now().Add(d))
		}
	}
	if t.WallClock > 0 {
		ad.WakeAt(j, j.Began().Add(t.WallClock))
	}
	if t.GPUHours > 0 && a.GPUs() > 0 {
		left := quantity.Sub(quantity.GPUTime(t.GPUHours), quantity.Add(j.GPUServed(), ad.gpusSince(a)))
		ad.WakeAt(j, ad.Now().Add(left/time.Duration(a.GPUs())+1))
	}
}

// Unsaved is the work that the machine of j has done since the newest checkpoint, on speed 1.
func (ad *Admission) Unsaved(j *state.Job) time.Duration {
	a, t := j.Live(), j.Terms()
	switch {
	case a == nil || a.Task() != state.TaskRunning || a.Nodes() > 1 && j.State() != state.Running:
		return 0
	case j.Total() > 0 && j.StepRate() > 0:
		return quantity.Hours(float64(max(0, a.Step()-j.SavedStep())) / j.StepRate())
	case t.Work > 0 && j.Total() > 0:
		return state.Share(t.Work, min(max(0, a.Step()-j.SavedStep()), j.Total()), j.Total())
	}
	return quantity.Scale(max(0, ad.Now().Sub(a.Kept())), cmp.Or(max(a.Speed(), 0), 1))
}

// Resumes reports whether a job can be resumed: it is paused or pausing, or ended without success.
func Resumes(j *state.Job) bool {
	return j.State() == state.Paused || j.Pausing() || j.State().Over() && j.State() != state.Succeeded
}

// WallClock is the time since a job first requested a machine, without the time in which it was paused, had ended or
// waited for approval.
func WallClock(j *state.Job, now time.Time) time.Duration {
	switch {
	case j.Began().IsZero():
		return 0
	case !j.PausedSince().IsZero():
		now = j.PausedSince()
	case j.State().Over():
		now = j.Finished()
	}
	return now.Sub(j.Began())
}

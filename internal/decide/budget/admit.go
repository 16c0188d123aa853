package budget

import (
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// smaller returns the smaller non-empty name, so that the answer does not depend on the order of jobs.
func smaller(a, b string) string {
	if a == "" || b < a {
		return b
	}
	return a
}

// Reason is why a job is not admitted.
type Reason string

// Reasons.
const (
	NoBudget    Reason = "no_budget"    // the job's maximum cost is unknown
	OtherOpen   Reason = "other_open"   // the maximum cost of another job in the scope is unknown
	Dollars     Reason = "dollars"      // the limit would be exceeded
	NoGPUBudget Reason = "no_gpu_hours" // the job's maximum GPU-hours are unknown
	GPUOpen     Reason = "other_gpu_open"
	GPUHours    Reason = "gpu_hours"
	TooMany     Reason = "jobs"
	TooLarge    Reason = "gpus" // it needs more GPUs or GPU-hours than the limit ever allows
)

// Refusal names the limit that refuses a job, and the fix.
type Refusal struct {
	Why   Reason `json:"why"`
	Limit Limit  `json:"limit"`
	Use   Use    `json:"use"`
	Fix   string `json:"fix"`
}

func (r Refusal) Error() string {
	l, u := r.Limit, r.Use
	usd := func(a money.Amount) string { return money.Short(a, money.USD) }
	switch r.Why {
	case NoBudget:
		return fmt.Sprintf("budget %s has a limit of %s, and the most that the job can cost is unknown", l.Name(),
			usd(*l.Dollars))
	case OtherOpen:
		return fmt.Sprintf("budget %s has a limit of %s, and the most that job %s can cost is unknown", l.Name(),
			usd(*l.Dollars), u.Unbounded)
	case Dollars:
		return fmt.Sprintf("budget %s: of %s, %s is spent and %s held, which leaves %s, and the job can cost %s",
			l.Name(), usd(*l.Dollars), usd(u.Spent), usd(u.Held), usd(u.room(l)), usd(u.asks))
	case NoGPUBudget:
		return fmt.Sprintf("budget %s has a limit of %g GPU-hours, and the most that the job can use is unknown",
			l.Name(), *l.GPUHours)
	case GPUOpen:
		return fmt.Sprintf("budget %s has a limit of %g GPU-hours, and the most that job %s can use is unknown",
			l.Name(), *l.GPUHours, u.GPUOpen)
	case GPUHours:
		return fmt.Sprintf("budget %s: of %g GPU-hours, %.4g are used and %.4g held", l.Name(), *l.GPUHours, u.GPUSpent,
			u.GPUHeld)
	case TooLarge:
		if l.GPUs != nil && r.Use.needs > *l.GPUs {
			return fmt.Sprintf("budget %s: %d GPUs may be in use at once, and the job needs %d", l.Name(), *l.GPUs, r.Use.needs)
		}
		return fmt.Sprintf("budget %s: a %s has %g GPU-hours, and the job can use more", l.Name(), l.Window, *l.GPUHours)
	case TooMany:
		return fmt.Sprintf("budget %s: %d of %d jobs wait or run", l.Name(), u.Jobs, *l.Jobs)
	}
	return string(r.Why)
}

// Admit checks a new job against every limit of its scopes. It returns nil if all allow it.
func (a Accounts) Admit(j Job) *Refusal {
	for _, l := range a.Limits {
		if !l.Scope.Holds(j.Owner, j.User) {
			continue
		}
		u := a.Use(l)
		u.asks = j.held()
		why, fix := l.refuses(&u, j)
		if why == "" {
			why, fix = l.refusesHours(&u, j)
		}
		switch {
		case why != "":
			return &Refusal{why, l, u, fix}
		case l.GPUs != nil && j.GPUs > *l.GPUs:
			u.needs = j.GPUs
			why, fix = TooLarge, "ask for fewer GPUs, or ask an admin for scrimp budgets set"
		case l.Jobs != nil && u.Jobs >= *l.Jobs && j.Kind != Hold:
			why, fix = TooMany, "wait until a job is over, or end one"
		}
		if why != "" {
			return &Refusal{why, l, u, fix}
		}
	}
	return nil
}

// refuses returns why a job would exceed the limit of dollars, and the fix.
func (l Limit) refuses(u *Use, j Job) (why Reason, fix string) {
	switch {
	case l.Dollars == nil || j.Kind == Part:
	case !j.Bounded:
		return NoBudget, "give the job a budget"
	case u.Unbounded != "":
		return OtherOpen, "end job " + u.Unbounded + ", or wait until it is over"
	case u.Spent.Add(u.Held).Add(j.held()).Cmp(*l.Dollars) > 0:
		return Dollars, u.fix(l)
	}
	return "", ""
}

// refusesHours does the same for the limit of GPU-hours.
func (l Limit) refusesHours(u *Use, j Job) (why Reason, fix string) {
	switch {
	case l.GPUHours == nil:
	case !j.GPUBounded:
		return NoGPUBudget, "give the job budget.gpu_hours"
	case l.Wait && j.GPUMost > *l.GPUHours:
		return TooLarge, "give the job a smaller budget.gpu_hours, or ask an admin for scrimp budgets set"
	case l.Wait: // the queue enforces it
	case u.GPUOpen != "":
		return GPUOpen, "end job " + u.GPUOpen + ", or wait until it is over"
	case u.GPUSpent+u.GPUHeld+j.GPUMost > *l.GPUHours:
		return GPUHours, "give the job a smaller budget.gpu_hours, or wait until jobs are over"
	}
	return "", ""
}

// Capped reports whether a job of that owner is under a limit of dollars or an approval threshold, so that it needs
// a maximum cost.
func Capped(limits []Limit, o ledger.Owner, user string) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool {
		return (l.Dollars != nil || l.Approve != nil) && l.Scope.Holds(o, user)
	})
}

// Bound is the maximum cost of work if no machine is rented above rate and none is slower than speed 1. It allows
// half again as much time, for starts and lost work. The job gets Bound as its budget, which stops it.
func Bound(work time.Duration, rate money.Rate) (money.Amount, bool) {
	if work <= 0 || rate <= 0 || work > 1<<62 {
		return money.Amount{}, false
	}
	return rate.Until(work + work/2), true
}

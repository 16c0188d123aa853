package admission

import (
	"fmt"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// guarded is the state of enforcing a limit in dollars.
type guarded struct {
	Next    time.Time // next check; zero: when an event may spend from it
	Checked time.Time
	Stops   bool // its jobs are being stopped
	// Passed is the order of the last job that the stop has checked, after the running ones are stopped.
	Passed uint64
}

// Due reports whether the limit must be checked.
func (g *guarded) Due(now time.Time) bool {
	return g.Checked.IsZero() || !g.Next.IsZero() && !g.Next.After(now)
}

// Overlap is the part of the span that lies after begin.
func Overlap(from, until, begin time.Time) time.Duration {
	if from.Before(begin) {
		from = begin
	}
	return max(0, until.Sub(from))
}

// GPUTime is the GPU time of an attempt from begin to t.
func GPUTime(a *state.Attempt, t, begin time.Time) (d time.Duration) {
	for _, k := range a.Tasks() {
		d = quantity.Add(d, quantity.Times(billed(k, t, begin), k.GPUs()))
	}
	return d
}

// billed is how long the task is billed from begin to t.
func billed(a *state.Task, t, begin time.Time) time.Duration {
	if a.From().IsZero() {
		return 0
	}
	if !a.Until().IsZero() && t.After(a.Until()) {
		t = a.Until()
	}
	return Overlap(a.From(), t, begin)
}

// GPUMost is the maximum GPU time of a job, or false if unknown.
func GPUMost(t *state.Terms) (time.Duration, bool) {
	return quantity.GPUTime(min(t.GPUHours, 5e5)), t.GPUHours > 0 || t.Need.LeastGPUs() == 0
}

// LeastGPUs is the smallest number of GPUs that a job needs on all its machines.
func LeastGPUs(t *state.Terms) int { return t.Need.LeastGPUs() * t.Fewest() }

// heldIdle returns the part of a refusal that says how much of the limit is held for idle machines.
func (ad *Admission) heldIdle(no *budget.Refusal, t time.Time) string {
	held, n := money.Amount{}, 0
	for _, i := range ad.State.Waiting() {
		idle, _ := i.Idle()
		if v := ad.books.IdleJob(i, &idle, t); no.Limit.Scope.Holds(v.Owner, v.User) && v.Most.Cmp(v.Spent) > 0 {
			held, n = held.Add(v.Most.Sub(v.Spent)), n+1
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s of what is held is for %s waiting for a job and paid for anyway (scrimp machines)",
		money.Short(held, ad.Config().Currency), step.Count(n, "machine"))
}

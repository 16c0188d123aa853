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

// guarded is how a limit of dollars is kept while its jobs run.
type guarded struct {
	Next    time.Time // when it is checked again; zero: when something happens that can spend of it
	Checked time.Time
	Stops   bool // its jobs are being stopped
	// passed is the order of the last job that the stop has gone through, of all, when none of it runs any more.
	Passed uint64
}

// Due reports whether the limit is to be looked at.
func (g *guarded) Due(now time.Time) bool {
	return g.Checked.IsZero() || !g.Next.IsZero() && !g.Next.After(now)
}

// Overlap is how much of the span lies after begin.
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

// billed is for how long the task is billed from begin to t.
func billed(a *state.Task, t, begin time.Time) time.Duration {
	if a.From().IsZero() {
		return 0
	}
	if !a.Until().IsZero() && t.After(a.Until()) {
		t = a.Until()
	}
	return Overlap(a.From(), t, begin)
}

// GPUMost is the GPU time that a job can use in all, or false where nobody knows.
func GPUMost(t *state.Terms) (time.Duration, bool) {
	return quantity.GPUTime(min(t.GPUHours, 5e5)), t.GPUHours > 0 || t.Need.LeastGPUs() == 0
}

// LeastGPUs is how many GPUs a job takes at least, on all its machines.
func LeastGPUs(t *state.Terms) int { return t.Need.LeastGPUs() * t.Fewest() }

// heldIdle says what of a limit that has no room is held for machines that wait for a job.
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

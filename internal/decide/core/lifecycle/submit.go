package lifecycle

import (
	"cmp"
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// Submit admits a new job to the queue, or makes it wait for approval.
func (js *Jobs) Submit(b *state.JobSubmitted) {
	if b.Job == "" || js.State.Job(b.Job) != nil {
		return
	}
	v := js.admission.Verdict(b.Job)
	switch {
	case v.No != nil:
		js.admission.TurnDown(v.No)
		return
	case v.Asking != nil || b.Asking != nil:
		js.Fact(state.JobHeld{Job: b.Job, Asking: v.Asking, Bound: v.Bound})
		js.DependOn(b.Job, b.Terms.After)
		j := js.State.Job(b.Job)
		js.queue.ClassOf(j)
		js.WakeAt(j, j.Approval().Until)
		return
	}
	js.Fact(state.JobQueued{Job: b.Job, Bound: v.Bound})
	js.DependOn(b.Job, b.Terms.After)
	j := js.State.Job(b.Job)
	js.Enqueue(j)
	js.Added = j
}

// Reviewed admits a job that waits for approval to the queue, or ends it. It ignores jobs that do not wait for
// approval.
func (js *Jobs) Reviewed(b state.JobReviewed) {
	j := js.State.Job(b.Job)
	if j == nil || j.State() != state.Held {
		return
	}
	if v := js.admission.Verdict(b.Job); v.No != nil {
		js.admission.TurnDown(v.No)
		return
	}
	step.TimesOf(j).Wake = time.Time{} // its approval can no longer expire
	if !b.Approved {
		js.Finish(j, state.Cancelled, step.Rejected, b.Reason)
		return
	}
	js.Fact(state.JobQueued{Job: j.ID(), Why: "approved"})
	js.Enqueue(j)
}

// TooLate returns by how much a waiting job misses its deadline at least, if it started at t on the fastest machine
// for sale. ok is false if it may be in time or has no deadline, or if its work is unknown and the deadline has not
// passed.
func (js *Jobs) TooLate(j *state.Job, t time.Time) (by time.Duration, ok bool) {
	terms := j.Terms()
	if terms.Deadline.IsZero() {
		return 0, false
	}
	speed := 0.0
	for _, l := range js.State.Sale() {
		speed = max(speed, l.Offer().Speed)
	}
	faster := 1.0
	for _, v := range terms.Need.Variants {
		faster = max(faster, v.Throughput)
	}
	left, _, known := j.Left(cmp.Or(speed, 1) * faster)
	end := t
	if known && left < 1<<61 {
		end = t.Add(left)
	}
	by = end.Sub(terms.Deadline)
	return by, by > 0
}

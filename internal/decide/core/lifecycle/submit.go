package lifecycle

import (
	"cmp"
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// Submit takes a new job: into the queue, or to wait for approval.
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

// Reviewed lets a job that waits for approval into the queue, or ends it. A job
// that waits for none, as one that was reviewed already, stays as it is.
func (js *Jobs) Reviewed(b state.JobReviewed) {
	j := js.State.Job(b.Job)
	if j == nil || j.State() != state.Held {
		return
	}
	if v := js.admission.Verdict(b.Job); v.No != nil {
		js.admission.TurnDown(v.No)
		return
	}
	step.TimesOf(j).Wake = time.Time{} // it expires no more
	if !b.Approved {
		js.Finish(j, state.Cancelled, step.Rejected, b.Reason)
		return
	}
	js.Fact(state.JobQueued{Job: j.ID(), Why: "approved"})
	js.Enqueue(j)
}

// TooLate reports by how much at least a job that waits misses its deadline, at t:
// on the fastest machine for sale, begun at once. ok is false where it may be in
// time, has no deadline, or nobody knows its work and the deadline is to come.
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

package core

import (
	"cmp"
	"time"

	"scrimp/internal/decide/state"
)

// submit takes a new job: into the queue, or to wait for approval.
func (m *Machine) submit(b *JobSubmitted) {
	if b.Job == "" || m.s.Job(b.Job) != nil {
		return
	}
	v := m.verdict(b.Job)
	switch {
	case v.no != nil:
		m.turnDown(v.no)
		return
	case v.asking != nil || b.Asking != nil:
		m.fact(state.JobHeld{Job: b.Job, Asking: v.asking, Bound: v.bound})
		m.dependOn(b.Job, b.Terms.After)
		j := m.s.Job(b.Job)
		m.classOf(j)
		m.wakeAt(j, j.Approval().Until)
		return
	}
	m.fact(state.JobQueued{Job: b.Job, Bound: v.bound})
	m.dependOn(b.Job, b.Terms.After)
	j := m.s.Job(b.Job)
	m.enqueue(j)
	m.added = j
}

// LimitSpent is why a job is stopped that its submitter's limits stop, whatever is left of its own.
const LimitSpent = "limit_spent"

// Why a held job is cancelled.
const (
	Rejected        = "rejected"
	ApprovalExpired = "approval_expired" // nobody has reviewed it in time
)

// reviewed lets a job that waits for approval into the queue, or ends it. A job
// that waits for none, as one that was reviewed already, stays as it is.
func (m *Machine) reviewed(b JobReviewed) {
	j := m.s.Job(b.Job)
	if j == nil || j.State() != Held {
		return
	}
	if v := m.verdict(b.Job); v.no != nil {
		m.turnDown(v.no)
		return
	}
	timesOf(j).wake = time.Time{} // it expires no more
	if !b.Approved {
		m.finish(j, Cancelled, Rejected, b.Reason)
		return
	}
	m.fact(state.JobQueued{Job: j.ID(), Why: "approved"})
	m.enqueue(j)
}

// TooLate reports by how much at least a job that waits misses its deadline, at t:
// on the fastest machine for sale, begun at once. ok is false where it may be in
// time, has no deadline, or nobody knows its work and the deadline is to come.
func (m *Machine) TooLate(j *Job, t time.Time) (by time.Duration, ok bool) {
	terms := j.Terms()
	if terms.Deadline.IsZero() {
		return 0, false
	}
	speed := 0.0
	for _, l := range m.s.Sale() {
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

package core

import (
	"cmp"
	"time"
)

// submit takes a new job: into the queue, or to wait for approval.
func (m *Machine) submit(out *Outcome, e Event, b JobSubmitted) {
	if _, known := m.jobs[b.Job]; known || b.Job == "" {
		return
	}
	m.order++
	j := &Job{ID: b.Job, Tenant: e.Tenant, Terms: b.Terms, By: by(e.Actor), State: Queued, Submitted: m.now, Without: m.now, Total: b.Terms.Steps, Interval: b.Terms.Interval, Event: m.seq}
	j.place.order = m.order
	m.jobs[j.ID] = j
	m.inOrder = append(m.inOrder, j)
	m.grow()
	m.mark(j)
	m.classOf(j)
	if b.Asking == nil {
		m.queue.add(j)
		return
	}
	j.State, j.Why, j.Detail = Held, WaitsForApproval, b.Asking.String()
	j.Approval = &Approval{PendingApproval: *b.Asking}
	m.wakeAt(j, b.Asking.Until)
	out.Actions = append(out.Actions, Notify{Job: j.ID, State: Held, Why: j.Why})
}

// LimitSpent is why a job is stopped that its submitter's limits stop, whatever is left of its own.
const LimitSpent = "limit_spent"

// Why a job is held, and why it is cancelled then.
const (
	WaitsForApproval = "waits_for_approval"
	Rejected         = "rejected"
	ApprovalExpired  = "approval_expired" // nobody has reviewed it in time
)

// reviewed lets a job that waits for approval into the queue, or ends it. A job
// that waits for none, as one that was reviewed already, stays as it is.
func (m *Machine) reviewed(out *Outcome, e Event, b JobReviewed) {
	j := m.jobs[b.Job]
	if j == nil || j.State != Held {
		return
	}
	m.touch(j)
	j.Approval = &Approval{PendingApproval: j.Approval.PendingApproval, At: m.now, By: cmp.Or(by(e.Actor), Owner), Approved: b.Approved, Reason: b.Reason}
	j.Wake = time.Time{} // it is given up for no more
	if !b.Approved {
		j.Detail = b.Reason
		m.finish(out, j, Cancelled, Rejected)
		return
	}
	j.State, j.Why, j.Detail, j.Without = Queued, "approved", "", m.now
	m.classOf(j)
	m.queue.add(j)
}

// TooLate reports by how much at least a job that waits misses its deadline, at t:
// on the fastest machine for sale, begun at once. ok is false where it may be in
// time, has no deadline, or nobody knows its work and the deadline is to come.
func (m *Machine) TooLate(j *Job, t time.Time) (by time.Duration, ok bool) {
	if j.Terms.Deadline.IsZero() {
		return 0, false
	}
	speed := 0.0
	for _, o := range m.sale {
		speed = max(speed, o.Offer.Speed)
	}
	faster := 1.0
	for _, v := range j.Terms.Need.Variants {
		faster = max(faster, v.Throughput)
	}
	left, _, known := j.Left(cmp.Or(speed, 1) * faster)
	end := t
	if known && left < 1<<61 {
		end = t.Add(left)
	}
	by = end.Sub(j.Terms.Deadline)
	return by, by > 0
}

package jobs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/reply"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/api"
)

// Approve lets a job that waits for approval into the queue, if the limits still have room for it: while it waited,
// it had no hold.
func (d *Service) Approve(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.Review](w, r)
	if !ok {
		return
	}
	defer d.Turns.Alone("approve " + r.PathValue("id"))() // a second approval must not count the same room
	if no := d.Settled(r.Context()); no != nil {
		no.Answer(w)
		return
	}
	d.review(w, r, b, true, func(j core.Job) *reply.Refusal {
		return MayApprove(auth.CallerOf(r), j.Approval(), j.User(), j.Terms().Owner.Team)
	})
}

// MayApprove returns why the caller may not approve a submission of the given user and team; nil: they may.
func MayApprove(c identity.Caller, a *state.Approval, user, team string) *reply.Refusal {
	switch a.May(c.User, user, c.Role(team) >= identity.Admin, c.Role(identity.Everywhere) >= identity.Operator) {
	case budget.OwnJob:
		return &reply.Refusal{Status: http.StatusForbidden, Title: "a job's submitter cannot approve it",
			Fix: "ask another operator of the team, or an admin"}
	case budget.NotForAll:
		return &reply.Refusal{Status: http.StatusForbidden, Title: "a budget for all teams requires this approval",
			Fix: "ask an operator of all teams", Err: errors.New(a.String())}
	}
	return nil
}

// Reject ends a job that waits for approval.
func (d *Service) Reject(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.Review](w, r)
	if !ok {
		return
	}
	if strings.TrimSpace(b.Reason) == "" {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "reason", "a rejection says why",
			"send a reason: its submitter reads it", nil)
		return
	}
	d.review(w, r, b, false, func(core.Job) *reply.Refusal { return nil })
}

// review writes a review to the log. Repeating a review changes nothing.
func (d *Service) review(w http.ResponseWriter, r *http.Request, b api.Review, approved bool,
	may func(core.Job) *reply.Refusal) {
	id := r.PathValue("id")
	look := func() (j core.Job) {
		d.Control.Job(id, func(_ *core.Machine, job *core.Job) { j = *job })
		return j
	}
	said := func(j core.Job) bool {
		return j.Approval() != nil && !j.Approval().At.IsZero() && j.Approval().Approved == approved
	}
	j := look()
	switch {
	case j.ID() == "": // an array has that name
		reply.UnknownJob(w, "", id)
		return
	case said(j):
		auth.CallOf(r).Written = true // it is in the log already
		d.Get(w, r)
		return
	case j.State() != core.Held:
		d.notHeld(w, j)
		return
	}
	if no := may(j); no != nil {
		no.Answer(w)
		return
	}
	auth.CallOf(r).Act.Detail = b.Reason
	e := d.Gate.Event(r, core.JobReviewed{Job: id, Approved: approved, Reason: b.Reason})
	if err := d.Gate.Propose(r, id, e); err != nil {
		budgets.Denied(auth.CallerOf(r), err, "the change was not saved", "try again").Answer(w)
		return
	}
	if j = look(); !said(j) { // another user ended or reviewed it in the meantime
		d.notHeld(w, j)
		return
	}
	d.Get(w, r)
}

func (d *Service) notHeld(w http.ResponseWriter, j core.Job) {
	reply.Problem(w, http.StatusConflict, fmt.Sprintf("job %s waits for no approval: it is %s (%s)", j.ID(), j.State(),
		j.Why()),
		"scrimp approve lists the jobs that do", nil)
}

// approval returns the approval of a job, pending or decided, as the API shows it.
func (d *Service) approval(j *core.Job) *api.Approval { return d.ApprovalOf(j.Approval()) }

// ApprovalOf returns an approval as the API shows it; nil if there is none.
func (d *Service) ApprovalOf(a *state.Approval) *api.Approval {
	if a == nil {
		return nil
	}
	clock := d.Control.Clock()
	v := &api.Approval{Limits: reply.List(convert.To[[]client.Threshold](a.Limits)), Until: clock.ToWall(a.Until),
		Reason: a.Reason, By: a.By, Proposal: a.Proposal}
	if a.Bounded {
		v.Most = new(a.Most)
	}
	if !a.At.IsZero() {
		v.At, v.Approved = new(clock.ToWall(a.At)), new(a.Approved)
	}
	return v
}

// explainWait explains what a waiting job waits for, if more is known than its last decision says: other jobs, a quota,
// approval, or a deadline that it can no longer meet.
func (d *Service) explainWait(m *core.Machine, j *core.Job, v *api.Job) {
	if j.State() != core.Queued && j.State() != core.Held {
		return
	}
	says := []string{}
	for _, on := range j.Waits() {
		v.Waits = append(v.Waits, on.On)
	}
	if len(v.Waits) > 0 {
		v.Why = "waits_for_others"
		says = append(says, "waits for "+strings.Join(v.Waits, ", "))
	} else if limit, detail, ok := m.Waits(j); ok {
		v.Why, v.Quota = "over_quota", limit
		says = append(says, "waits: "+detail)
	} else if running, most, full := m.Full(); full && j.State() == core.Queued && v.Why == "" {
		v.Why = string(plan.ServerFull)
		says = append(says, fmt.Sprintf("waits: the server lets %d jobs hold machines at once, and %d do "+
			"(scrimp serve --running)", most, running))
	} else if v.Detail != "" {
		says = append(says, v.Detail)
	}
	if j.State() == core.Held {
		says = append(says, "it is given up at "+d.Control.Clock().ToWall(j.Approval().Until).Format("2006-01-02 15:04 MST"))
		if !j.Terms().Deadline.IsZero() {
			says = append(says, "its deadline runs on")
		}
	}
	if late, ok := m.TooLate(j, d.Control.Now()); ok {
		says = append(says, fmt.Sprintf("it will miss its deadline by at least %v", late.Round(time.Second)))
	}
	v.Detail = strings.Join(says, "; ")
}

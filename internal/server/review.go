package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/api"
	"scrimp/internal/api/convert"
	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/reply"
)

// postApprove lets a job that waits for approval into the queue, if the limits
// still have room for it: it took nothing while it waited.
func (s *Server) postApprove(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.Review](w, r, 1<<16)
	if !ok {
		return
	}
	defer s.turns.Alone("approve " + r.PathValue("id"))() // a second approval is not weighed beside the first
	if no := s.budgets.Settled(r.Context()); no != nil {
		no.Answer(w)
		return
	}
	s.review(w, r, b, true, func(j core.Job) *reply.Refusal {
		c := auth.CallerOf(r)
		switch j.Approval().May(c.User, j.User(), c.Role(j.Terms().Owner.Team) >= identity.Admin,
			c.Role(identity.Everywhere) >= identity.Operator) {
		case budget.OwnJob:
			return &reply.Refusal{Status: http.StatusForbidden, Title: "who submitted a job does not approve it",
				Fix: "ask another operator of the team, or an admin"}
		case budget.NotForAll:
			return &reply.Refusal{Status: http.StatusForbidden, Title: "a limit of all teams asks for this approval",
				Fix: "ask an operator of all teams", Err: errors.New(j.Approval().String())}
		}
		return nil
	})
}

// postReject ends a job that waits for approval.
func (s *Server) postReject(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.Review](w, r, 1<<16)
	if !ok {
		return
	}
	if strings.TrimSpace(b.Reason) == "" {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "reason", "a rejection says why",
			"send a reason: its submitter reads it", nil)
		return
	}
	s.review(w, r, b, false, func(core.Job) *reply.Refusal { return nil })
}

// review puts a review in the log. A second one that says the same changes nothing.
func (s *Server) review(w http.ResponseWriter, r *http.Request, b api.Review, approved bool,
	may func(core.Job) *reply.Refusal) {
	const longest = 1000
	if len(b.Reason) > longest {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "reason", fmt.Sprintf("the reason has more than %d bytes",
			longest),
			"shorten it", nil)
		return
	}
	id := r.PathValue("id")
	look := func() (j core.Job) {
		s.control.Job(id, func(_ *core.Machine, job *core.Job) { j = *job })
		return j
	}
	said := func(j core.Job) bool {
		return j.Approval() != nil && !j.Approval().At.IsZero() && j.Approval().Approved == approved
	}
	j := look()
	switch {
	case said(j):
		s.getJob(w, r)
		return
	case j.State() != core.Held:
		s.notHeld(w, j)
		return
	}
	if no := may(j); no != nil {
		no.Answer(w)
		return
	}
	auth.CallOf(r).Act.Detail = b.Reason
	e := s.gate.Event(r, core.JobReviewed{Job: id, Approved: approved, Reason: b.Reason})
	if err := s.gate.Propose(r, id, e); err != nil {
		budgets.Denied(auth.CallerOf(r), err, "not written", "ask again").Answer(w)
		return
	}
	if j = look(); !said(j) { // it was ended, or reviewed by another, meanwhile
		s.notHeld(w, j)
		return
	}
	s.getJob(w, r)
}

func (s *Server) notHeld(w http.ResponseWriter, j core.Job) {
	reply.Problem(w, http.StatusConflict, fmt.Sprintf("job %s waits for no approval: it is %s (%s)", j.ID(), j.State(),
		j.Why()),
		"scrimp approve lists the jobs that do", nil)
}

// approval is what a job waits for, or waited for, as people see it.
func (s *Server) approval(j *core.Job) *api.Approval {
	a := j.Approval()
	if a == nil {
		return nil
	}
	clock := s.control.Clock()
	v := &api.Approval{Limits: convert.To[[]client.Threshold](a.Limits), Until: clock.ToWall(a.Until),
		Reason: a.Reason, By: a.By}
	if a.Bounded {
		v.Most = new(a.Most)
	}
	if !a.At.IsZero() {
		v.At, v.Approved = new(clock.ToWall(a.At)), new(a.Approved)
	}
	return v
}

// waits says what a job that does not run waits for, where more is known than its
// last decision says: a quota, approval, and a deadline that cannot be met any more.
func (s *Server) waits(m *core.Machine, j *core.Job, v *api.Job) {
	if j.State() != core.Queued && j.State() != core.Held {
		return
	}
	says := []string{}
	if limit, detail, ok := m.Waits(j); ok {
		v.Why, v.Quota = "over_quota", limit
		says = append(says, "waits: "+detail)
	} else if v.Detail != "" {
		says = append(says, v.Detail)
	}
	if j.State() == core.Held {
		says = append(says, "it is given up at "+s.control.Clock().ToWall(j.Approval().Until).Format("2006-01-02 15:04 MST"))
		if !j.Terms().Deadline.IsZero() {
			says = append(says, "its deadline runs on")
		}
	}
	if late, ok := m.TooLate(j, s.control.Now()); ok {
		says = append(says, fmt.Sprintf("its deadline cannot be met any more, by %v at least", late.Round(time.Second)))
	}
	v.Detail = strings.Join(says, "; ")
}

// askedFolder notes which approvals webhooks were asked for.
const askedFolder = "asked"

// askApproval tells the webhooks of the limits that a job waits for approval, and
// notes that they were told. A server that ends before tells them at its next start.
func (s *Server) askApproval(ctx context.Context, n core.Notify) {
	var j core.Job
	var rules budget.Rules
	s.control.Read(func(m *core.Machine) {
		if job, ok := m.Job(n.Job); ok {
			j = *job
		}
		rules, _ = m.Rules()
	})
	if j.State() != core.Held { // it was reviewed before anybody was asked
		return
	}
	told := map[string]bool{}
	for _, t := range j.Approval().Limits {
		i := slices.IndexFunc(rules.Limits, func(l budget.Limit) bool { return l.Name() == t.Limit })
		if i < 0 || rules.Limits[i].Notify == "" || told[rules.Limits[i].Notify] {
			continue
		}
		target := rules.Limits[i].Notify
		told[target] = true
		err := s.hooks.Deliver(ctx, target, n.Job, n.Key(), word{ID: n.Key(), Job: n.Job, State: string(n.State), Why: n.Why,
			Approval: &asked{Budget: t.Limit, Detail: j.Approval().String(), By: j.User(), Team: j.Terms().Owner.Team,
				Until: s.control.Clock().ToWall(j.Approval().Until), Fix: "scrimp approve " + n.Job}})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.opts.Log.Warn("webhook of a budget not told of an approval that is asked for", "limit", t.Limit, "job", n.Job,
				"error", err)
		}
	}
	if len(told) == 0 {
		return
	}
	if err := os.WriteFile(filepath.Join(s.opts.Dir, askedFolder, n.Job), nil, 0o600); err != nil {
		s.opts.Log.Warn("not noted that an approval was asked for; it is asked for again", "job", n.Job, "error", err)
	}
}

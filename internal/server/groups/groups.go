// Package groups shows and ends groups of jobs.
package groups

import (
	"context"
	"net/http"
	"strings"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/keymutex"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
)

// Service answers requests about groups.
type Service struct {
	Gate    *auth.Gate
	Control *control.Control
	Jobs    *jobs.Service
	Turns   *keymutex.Turns
	Settled func(ctx context.Context) *reply.Refusal // why the core lacks the limits in force; nil: it has them
}

func sees(c identity.Caller, g *state.Group) bool {
	return c.Role(g.Terms.Owner.Team) >= identity.Viewer
}

// Visible returns a group as the API shows it, if the caller may see it.
func (d *Service) Visible(c identity.Caller, id string) (v api.Group, ok bool) {
	d.find(id, func(k known, g *state.Group) {
		if sees(c, g) && g.Terms.Member != nil {
			v, ok = d.show(k, g), true
		}
	})
	if v.Schedule != nil {
		v.Schedule.Reports, _ = d.Jobs.Notices(v.ID)
	}
	return v, ok
}

// Get returns a group.
func (d *Service) Get(w http.ResponseWriter, r *http.Request) {
	if v, ok := d.group(w, r); ok {
		reply.JSON(w, v)
	}
}

func (d *Service) group(w http.ResponseWriter, r *http.Request) (v api.Group, ok bool) {
	id := r.PathValue("id")
	if v, ok = d.Visible(auth.CallerOf(r), id); !ok {
		reply.UnknownJob(w, "", id)
	}
	return v, ok
}

// End ends a group and its members.
func (d *Service) End(w http.ResponseWriter, r *http.Request) {
	v, ok := d.group(w, r)
	if !ok {
		return
	}
	b, ok := reply.Body[api.End](w, r)
	if !ok {
		return
	}
	if v.State == string(state.GroupOver) {
		auth.CallOf(r).Written = true // there is nothing left to end, so nothing to record
		reply.JSON(w, v)
		return
	}
	ends := state.CancelMembers
	if b.Save {
		ends = state.StopMembers
	}
	if err := d.Gate.Propose(r, v.ID, d.Gate.Event(r, core.GroupClosed{Group: v.ID, Members: ends})); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
		return
	}
	d.Get(w, r)
}

// review approves or ends a group that waits for approval.
func (d *Service) review(w http.ResponseWriter, r *http.Request, approved bool) {
	v, ok := d.group(w, r)
	if !ok {
		return
	}
	b, ok := reply.Body[api.Review](w, r)
	if !ok {
		return
	}
	defer d.Turns.Alone("approve " + v.ID)() // serialize approvals, so that a second one does not count the same room
	var approval *state.Approval
	d.Control.Read(func(m *core.Machine) {
		if g := m.State().Group(v.ID); g != nil && g.Phase == state.GroupAwaits {
			approval = g.Approval
		}
	})
	no := d.Settled(r.Context())
	switch {
	case approval == nil:
		no = &reply.Refusal{Status: http.StatusConflict, Title: v.ID + " does not wait for approval",
			Fix: "scrimp status " + v.ID + " shows how it is"}
	case approved && no == nil:
		no = jobs.MayApprove(auth.CallerOf(r), approval, v.User, v.Team)
	case !approved && strings.TrimSpace(b.Reason) == "":
		no = &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "reason", Title: "a rejection says why",
			Fix: "send a reason: its submitter reads it"}
	}
	if no == nil {
		e := d.Gate.Event(r, core.GroupReviewed{Group: v.ID, Approved: approved, Reason: b.Reason})
		if err := d.Gate.Propose(r, v.ID, e); err != nil {
			no = budgets.Denied(auth.CallerOf(r), err, "the change was not saved", "try again")
		}
	}
	if no != nil {
		no.Answer(w)
		return
	}
	d.Get(w, r)
}

// Approve starts a group that waits for approval.
func (d *Service) Approve(w http.ResponseWriter, r *http.Request) { d.review(w, r, true) }

// Reject ends a group that waits for approval.
func (d *Service) Reject(w http.ResponseWriter, r *http.Request) { d.review(w, r, false) }

func (d *Service) show(k known, g *state.Group) api.Group {
	m := k.m
	clock, now, t := d.Control.Clock(), d.Control.Now(), &g.Terms
	v := api.Group{ID: g.Name, Kind: string(t.Kind), State: string(g.Phase), Why: g.Why, Detail: g.Detail,
		Members: g.Members(), Began: g.Began, Open: g.Open, AtOnce: t.AtOnce, Succeeded: g.Ended.Succeeded,
		Failed: g.Ended.Failed, Stopped: g.Ended.Stopped, Cancelled: g.Ended.Cancelled,
		Submitted: clock.ToWall(g.Opened), Spent: m.GroupSpent(g, now), Tags: t.Owner.Tags, Team: t.Owner.Team,
		Project: t.Owner.Project, User: g.User(), Approval: d.Jobs.ApprovalOf(g.Approval),
		Name: t.Member.Name, Currency: t.Member.Currency, Speed: clock.Speed}
	if at := t.Member.Deadline; !at.IsZero() {
		v.Deadline = new(clock.ToWall(at))
	}
	if t.Kind == groups.Array {
		v.Array = &api.Indexes{From: t.Array.From, Step: t.Array.Step}
	}
	if g.Study != nil {
		v.Study = d.studyOf(k, g)
	}
	if t.Pipeline != nil {
		v.Pipeline = d.pipelineOf(k, g)
		countStages(&v, k, g)
	}
	if g.Schedule != nil {
		v.Schedule = d.scheduleOf(k, g)
		countRuns(&v, m.Runs(g)[1:], &g.Schedule.Archived)
	}
	v.Of = t.Parent
	for _, on := range g.Waits {
		v.Waits = append(v.Waits, on.On)
	}
	if t.HasBudget {
		v.Budget = new(t.Budget)
	}
	v.Closed = g.Phase == state.GroupOver
	rate := money.Rate(0)
	for _, x := range m.Runs(g) {
		for n := range x.Began {
			if j := m.State().Job(x.MemberID(n)); j != nil {
				v.Closed = v.Closed && j.Priced()
				if a := j.Live(); a != nil {
					rate += a.Rate()
				}
			}
		}
	}
	if rate > 0 {
		v.Rate = &rate
	}
	if !g.Finished.IsZero() {
		v.Finished = new(clock.ToWall(g.Finished))
	}
	return v
}

// Receipt returns the cost of a group, by member.
func (d *Service) Receipt(w http.ResponseWriter, r *http.Request) {
	v, ok := d.group(w, r)
	if !ok {
		return
	}
	rec := api.GroupReceipt{Group: v, Members: []api.GroupMember{}, OnDemand: new(money.Amount{})}
	uses := map[ledger.Use]money.Amount{}
	for _, id := range d.members(v.ID) {
		d.Control.Job(id, func(_ *core.Machine, j *core.Job) {
			rec.Members = append(rec.Members, d.line(j, j.Terms().Index, uses))
		})
	}
	for _, m := range rec.Members {
		rec.Cost, rec.Interruptions = rec.Cost.Add(m.Cost), rec.Interruptions+m.Interruptions
		if m.OnDemand == nil {
			rec.OnDemand = nil
		} else if rec.OnDemand != nil {
			rec.OnDemand = new(rec.OnDemand.Add(*m.OnDemand))
		}
	}
	rec.Useful, rec.Lost = uses[ledger.Useful], uses[ledger.Lost]
	rec.StartUp, rec.Idle = uses[ledger.StartUp], uses[ledger.Idle]
	if v.Study != nil {
		rec.Study = d.studyReceipt(v, rec.Members)
	}
	reply.JSON(w, rec)
}

// members returns the jobs of a group in the order of their start.
func (d *Service) members(group string) (ids []string) {
	d.findWith(group, allRuns, func(k known, g *state.Group) {
		for _, run := range k.runs(g) {
			for n := range run.Began {
				ids = append(ids, run.MemberID(n))
			}
		}
	})
	return ids
}

// line returns the cost of a member, and adds it to uses.
func (d *Service) line(j *core.Job, index int, uses map[ledger.Use]money.Amount) api.GroupMember {
	m := api.GroupMember{ID: j.ID(), Index: index, State: string(j.State()), Why: j.Why(), Attempts: len(j.Attempts()),
		Cost: j.Spent(d.Control.Now()), OnDemand: j.OnDemand(), Exit: j.Exit()}
	for n, a := range j.Attempts() {
		if n == 0 && !a.From().IsZero() {
			m.Started = new(d.Control.Clock().ToWall(a.From()))
		}
		if a.Taken() {
			m.Interruptions++
		}
		for use, amount := range a.Uses() {
			if uses[use] = uses[use].Add(amount); use == ledger.Lost {
				m.Lost = m.Lost.Add(amount)
			}
		}
	}
	if !j.Finished().IsZero() {
		m.Finished = new(d.Control.Clock().ToWall(j.Finished()))
	}
	return m
}

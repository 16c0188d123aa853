package proposals

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
)

// Service answers requests about proposals.
type Service struct {
	Gate    *auth.Gate
	Control *control.Control
	View    *view.View // the audit trail
	Jobs    *jobs.Service
	HasTeam func(name string) bool
}

// most is how many proposals a list has: the newest.
const most = 1000

// List lists the proposals that the caller may see.
func (d *Service) List(w http.ResponseWriter, r *http.Request) {
	q, c := r.URL.Query(), auth.CallerOf(r)
	v := client.Proposals{Exact: true, Currency: money.USD}
	if text := q.Get("budget"); text != "" {
		a, err := spec.ParseAmount(text)
		if err != nil || a.Sign() < 0 || a.Cmp(mostBudget) > 0 {
			reply.FieldProblem(w, http.StatusBadRequest, "budget", "this is no budget",
				"write an amount from 0 to $1,000,000,000,000 without commas, such as 500", err)
			return
		}
		v.Budget = &a
	}
	team := q.Get("team")
	if team != "" && (c.Role(team) < identity.Viewer || !d.HasTeam(team)) {
		reply.FieldProblem(w, http.StatusNotFound, "team", fmt.Sprintf("there is no team %.60q that you may see", team),
			"scrimp teams lists the teams", nil)
		return
	}
	if err := d.list(r.Context(), c, team, &v); err != nil {
		unread(w, err)
		return
	}
	reply.JSON(w, v)
}

// list adds the proposals that a caller sees, of a team or of all, with their ranks.
func (d *Service) list(ctx context.Context, c identity.Caller, team string, v *client.Proposals) error {
	made, err := d.read(ctx, func(p *proposal) bool {
		return (team == "" || p.Team == team) && c.Role(p.Team) >= identity.Viewer
	})
	v.Proposals = []client.Proposal{}
	for _, p := range slices.Backward(made) {
		if len(v.Proposals) == most {
			break
		}
		if x, ok := d.show(p); ok {
			v.Proposals = append(v.Proposals, x)
		}
	}
	rank(v)
	return err
}

// mostBudget is the largest budget that a list takes: the largest amount of other requests.
var mostBudget = money.Picos(1e12).Times(1_000_000_000_000)

func unread(w http.ResponseWriter, err error) {
	reply.Problem(w, http.StatusServiceUnavailable, "cannot read the log", "ask again", err)
}

// Get returns a proposal, with its rank among all that the caller sees.
func (d *Service) Get(w http.ResponseWriter, r *http.Request) {
	p := d.find(w, r)
	if p == nil {
		return
	}
	v, _ := d.show(p)
	if v.State == string(core.Held) {
		all := client.Proposals{Exact: true, Currency: money.USD}
		if err := d.list(r.Context(), auth.CallerOf(r), "", &all); err != nil {
			unread(w, err)
			return
		}
		if i := slices.IndexFunc(all.Proposals, func(x client.Proposal) bool { return x.ID == v.ID }); i >= 0 {
			v = all.Proposals[i]
		}
	}
	reply.JSON(w, v)
}

// find returns the proposal that the path names, or answers that there is none.
func (d *Service) find(w http.ResponseWriter, r *http.Request) *proposal {
	id := r.PathValue("id")
	made, err := d.read(r.Context(), func(p *proposal) bool { return p.act.Object == id })
	switch {
	case err != nil:
		unread(w, err)
		return nil
	case len(made) == 0:
		reply.Problem(w, http.StatusNotFound, fmt.Sprintf("%.40s is no proposal", id),
			"scrimp proposals lists them, and scrimp status shows other jobs", nil)
		return nil
	}
	return made[len(made)-1]
}

// SetOutcome records what a proposal has given. Earlier outcomes stay in the audit trail.
func (d *Service) SetOutcome(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.ProposalOutcome](w, r)
	if !ok {
		return
	}
	field, fix := "", ""
	switch {
	case b.Value != nil && b.Value.Sign() < 0:
		field, fix = "value", "a value is 0 or more: leave it out if it is unknown"
	case b.Value == nil && !says(b.Text):
		field, fix = "text", "say what it gave: words in text, an amount in value, or both"
	}
	if field != "" {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, field, "the outcome is not complete", fix, nil)
		return
	}
	p := d.find(w, r)
	if p == nil {
		return
	}
	if v, _ := d.show(p); v.Approval == nil || v.Approval.Approved == nil || !*v.Approval.Approved {
		reply.Problem(w, http.StatusConflict, "the proposal was never approved, so it has no outcome",
			"scrimp proposals show "+v.ID+" says whether it waits", nil)
		return
	}
	text, err := json.Marshal(b)
	if err == nil {
		err = d.Gate.ProposeWith(r, p.act.Object, string(text))
	}
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "try again", err)
		return
	}
	if p = d.find(w, r); p != nil {
		v, _ := d.show(p)
		reply.JSON(w, v)
	}
}

// read returns the proposals that wanted accepts, oldest first, each with its newest outcome.
func (d *Service) read(ctx context.Context, wanted func(*proposal) bool) (list []*proposal, err error) {
	of := map[string]*proposal{}
	err = d.acts(ctx, madeRoute, func(seq uint64, act identity.Act) {
		p := &proposal{act: act, seq: seq}
		if json.Unmarshal([]byte(act.Detail), &p.record) == nil && wanted(p) {
			of[act.Object] = p
			list = append(list, p)
		}
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	err = d.acts(ctx, outcomeRoute, func(_ uint64, act identity.Act) {
		var o client.ProposalOutcome
		if p := of[act.Object]; p != nil && act.Outcome == "done" && json.Unmarshal([]byte(act.Detail), &o) == nil {
			p.outcome, p.outcomeBy, p.outcomeAt = &o, act.Who, act.At
		}
	})
	return list, err
}

// acts calls f with the acts on a route, oldest first.
func (d *Service) acts(ctx context.Context, route string, f func(seq uint64, act identity.Act)) error {
	for after := uint64(0); ; {
		records, err := d.View.Acts(ctx, d.Control.Durable(), view.OfRoute(route), after, 1000)
		if err != nil || len(records) == 0 {
			return err
		}
		for _, rec := range records {
			after = rec.Seq
			e, _, err := replay.Decode(rec)
			if err != nil {
				return err
			}
			if b, ok := e.Body.(core.Audited); ok {
				f(rec.Seq, b.Act)
			}
		}
	}
}

// show returns a proposal as the API shows it, with its job. ok is false if the job does not exist: the proposal was
// never submitted.
func (d *Service) show(p *proposal) (v client.Proposal, ok bool) {
	v = client.Proposal{ID: p.act.Object, Team: p.Team, User: p.act.Who, At: p.act.At, Proposing: p.Proposing,
		Currency: p.Currency, Cost: p.Cost, Outcome: p.outcome, OutcomeBy: p.outcomeBy}
	if p.outcome != nil {
		v.OutcomeAt = &p.outcomeAt
	}
	ok = d.Control.Job(v.ID, func(_ *core.Machine, j *core.Job) {
		v.State, v.Over, v.Spent = string(j.State()), j.Priced(), j.Spent(d.Control.Now())
		v.Approval = d.Jobs.ApprovalOf(j.Approval())
	})
	if ok && v.Over && v.Cost != nil && v.Cost[1].Sign() > 0 && v.Spent.Sign() > 0 {
		v.CostError = new(v.Spent.Float()/v.Cost[1].Float() - 1)
	}
	return v, ok
}

// byRank sorts proposals: those that wait by rank, those that wait without one, then the others. Each group keeps its
// order.
func byRank(a, b client.Proposal) int {
	place := func(x client.Proposal) (group, rank int) {
		switch {
		case x.Rank != nil:
			return 0, *x.Rank
		case x.State == string(core.Held):
			return 1, 0
		}
		return 2, 0
	}
	g, i := place(a)
	h, j := place(b)
	return cmp.Or(cmp.Compare(g, h), cmp.Compare(i, j))
}

package anomalies

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
)

// mostPlans bounds the planned spans of an installation: each search compares every row with each.
const mostPlans = 1000

// Plans lists the planned spans that concern the caller, those that end last first.
func (d *Service) Plans(w http.ResponseWriter, r *http.Request) {
	s, err := d.read(r.Context())
	if err != nil {
		reports.Unread(w, "cannot read the log", err)
		return
	}
	c := auth.CallerOf(r)
	list := slices.DeleteFunc(s.plans, func(p client.PlannedAnomalies) bool {
		return p.Team != "" && c.Role(p.Team) < identity.Viewer
	})
	slices.SortStableFunc(list, func(a, b client.PlannedAnomalies) int { return b.Until.Compare(a.Until) })
	reply.JSON(w, reply.List(list))
}

// Plan records a span in which unusual spending is expected.
func (d *Service) Plan(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.PlanAnomalies](w, r)
	if !ok {
		return
	}
	c, now := auth.CallerOf(r), d.now()
	p, no := d.planOf(c, &b, now)
	if no != nil {
		no.Answer(w)
		return
	}
	s, err := d.read(r.Context())
	switch {
	case err != nil:
		reports.Unread(w, "cannot read the log", err)
		return
	case len(s.plans) >= mostPlans:
		reply.Problem(w, http.StatusConflict, fmt.Sprintf("there are %d planned spans already", mostPlans),
			"remove those that are over with scrimp anomalies unplan NAME", nil)
		return
	}
	detail, err := json.Marshal(p)
	name := nameOf(detail, c.User)
	if err == nil {
		err = d.Gate.ProposeWith(r, name, string(detail))
	}
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	reply.JSON(w, p.show(name, c.User, now))
}

// nameOf returns the name of a plan. The time distinguishes it from an equal one.
func nameOf(detail []byte, who string) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%d", detail, who, time.Now().UnixNano())
	return fmt.Sprintf("p-%010x", h.Sum64()&0xff_ffff_ffff)
}

// planOf returns the plan of a request, or what is wrong with it.
func (d *Service) planOf(c identity.Caller, b *client.PlanAnomalies, now time.Time) (p plan, no *reply.Refusal) {
	p = plan{Since: now, Team: b.Team, Project: b.Project, Job: b.Job, Why: strings.TrimSpace(b.Why)}
	if p.Why == "" {
		return p, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "why", Title: "why is empty",
			Fix: "say what is planned: scrimp anomalies planned shows it"}
	}
	if b.Since != "" {
		if p.Since, no = moment("since", b.Since, now, now); no != nil {
			return p, no
		}
	}
	if p.Until, no = moment("until", b.Until, p.Since, now); no != nil {
		return p, no
	}
	switch {
	case p.Since.Before(now.Add(-ahead)) || p.Since.After(now.Add(ahead)):
		return p, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "since",
			Title: "since is more than a year from now", Fix: "write a nearer time"}
	case !p.Until.After(p.Since):
		return p, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "until",
			Title: "until is not after since", Fix: "write a later time"}
	case p.Until.Sub(p.Since) > ahead:
		return p, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "until",
			Title: "until is more than a year after since", Fix: "write an earlier time"}
	}
	if no = d.scope(c, &p); no == nil {
		no = needs(c, p.Team)
	}
	return p, no
}

// scope completes a plan with the team of its job, and returns what is wrong with its team. A job that the caller may
// not see is like one that does not exist.
func (d *Service) scope(c identity.Caller, p *plan) *reply.Refusal {
	owner, known := "", false
	if p.Job != "" {
		known = d.Control.Job(p.Job, func(_ *core.Machine, j *core.Job) { owner = j.Terms().Owner.Team })
		d.Control.Read(func(m *core.Machine) {
			if g := m.State().Group(p.Job); !known && g != nil {
				owner, known = g.Terms.Owner.Team, true
			}
		})
	}
	known = known && c.Role(owner) >= identity.Viewer
	switch {
	case known && p.Team == "":
		p.Team = owner
	case known && p.Team != owner:
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "job",
			Title: fmt.Sprintf("%.60s is not a job of the team %.60s", p.Job, p.Team),
			Fix:   "leave the team out, or name another job"}
	case p.Team != "" && (c.Role(p.Team) < identity.Viewer || d.HasTeams() && !d.HasTeam(p.Team)):
		return &reply.Refusal{Status: http.StatusNotFound, Field: "team", Fix: "scrimp teams lists the teams",
			Title: fmt.Sprintf("there is no team %.60q that you may see", p.Team)}
	}
	return nil
}

// Unplan removes a planned span.
func (d *Service) Unplan(w http.ResponseWriter, r *http.Request) {
	c, name := auth.CallerOf(r), r.PathValue("id")
	s, err := d.read(r.Context())
	if err != nil {
		reports.Unread(w, "cannot read the log", err)
		return
	}
	at := slices.IndexFunc(s.plans, func(p client.PlannedAnomalies) bool { return p.Name == name })
	if at < 0 || s.plans[at].Team != "" && c.Role(s.plans[at].Team) < identity.Viewer {
		reply.FieldProblem(w, http.StatusNotFound, "id", fmt.Sprintf("there is no planned span %.40q", name),
			"scrimp anomalies planned lists them", nil)
		return
	}
	if no := needs(c, s.plans[at].Team); no != nil {
		no.Answer(w)
		return
	}
	if err := d.Gate.Propose(r, name); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

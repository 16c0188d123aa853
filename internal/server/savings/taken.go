package savings

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/charge"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/work/recommend"
)

// takeRoute is the name of the route in the audit trail.
const takeRoute = "POST /v1/recommend/take"

// mostTaken is how many recommendations that were taken a list has: the newest.
const mostTaken = 20

// taken is a recommendation that somebody follows, as the audit trail keeps it.
type taken struct {
	recommend.Taken
	At  time.Time `json:"at"` // market time, a whole hour: each charge lies on one side
	who string
}

// Take records that a team follows a recommendation, with its expected saving.
func (d *Service) Take(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.TakeRecommendation](w, r)
	if !ok {
		return
	}
	c := auth.CallerOf(r)
	if b.Team != "" && c.Role(b.Team) < identity.Viewer {
		unknownTeam(w, b.Team)
		return
	}
	if recommend.UnitsOf(b.Name) == "" {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "name",
			fmt.Sprintf("there is no recommendation %.40q", b.Name), "scrimp recommend lists them", nil)
		return
	}
	if no := needs(c, b.Team); no != nil {
		no.Answer(w)
		return
	}
	inputs, known, err := d.inputs(r, c, b.Team, standardTarget)
	if err != nil {
		reports.Unread(w, "cannot read the ledger", err)
		return
	}
	t, no := takenOf(&b, inputs, known)
	if no != nil {
		no.Answer(w)
		return
	}
	made, err := d.allTaken(r.Context(), c, b.Team)
	if err != nil {
		reports.Unread(w, "cannot read the log", err)
		return
	}
	t.At, t.who = d.now().Truncate(time.Hour), c.User
	for _, x := range made {
		if x.Name == t.Name && x.Team == t.Team && x.Currency == t.Currency && d.now().Sub(x.At) < recommend.Month {
			reply.FieldProblem(w, http.StatusConflict, "name", fmt.Sprintf("%s is already taken, at %s UTC by %s", t.Name,
				x.At.UTC().Format("2006-01-02 15:04"), x.who), "scrimp recommend says what it has saved", nil)
			return
		}
	}
	detail, err := json.Marshal(t)
	if err == nil {
		err = d.Gate.ProposeWith(r, t.Name, string(detail))
	}
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	list, err := d.compare(r.Context(), c, []taken{*t})
	if err != nil {
		reports.Unread(w, "cannot read the ledger", err)
		return
	}
	reply.JSON(w, list[0])
}

// needs returns why the caller may take nothing for a team; nil: the caller may.
func needs(c identity.Caller, team string) *reply.Refusal {
	least := identity.Operator
	if team == "" {
		team, least = identity.Everywhere, identity.Admin
	}
	if c.Role(team) >= least {
		return nil
	}
	return &reply.Refusal{Status: http.StatusForbidden, Fix: "ask somebody who has it, or an admin for the role",
		Title: fmt.Sprintf("this needs the role %s of %s, and %s has %s", least, nameOf(team), c.User, c.Role(team))}
}

// takenOf returns the recommendation of a request with its expected saving, or why the request is refused.
func takenOf(b *client.TakeRecommendation, inputs []*recommend.Input, known time.Duration) (*taken, *reply.Refusal) {
	if b.Currency == "" && len(inputs) > 1 {
		return nil, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "currency",
			Title: "the costs have several currencies", Fix: "name the one that the recommendation is of"}
	}
	for _, in := range inputs {
		if b.Currency != "" && b.Currency != in.Currency {
			continue
		}
		list := recommend.Make(in).Recommendations
		at := slices.IndexFunc(list, func(l recommend.Recommendation) bool { return l.Name == b.Name })
		if at < 0 {
			break
		}
		t := &taken{Taken: recommend.Taken{Name: b.Name, Team: b.Team, Currency: in.Currency, Alone: list[at].Alone,
			Span: known, Series: in.SeriesOf(b.Name)}}
		return t, nil
	}
	return nil, &reply.Refusal{Status: http.StatusConflict, Field: "name",
		Fix:   "scrimp recommend lists what they recommend",
		Title: fmt.Sprintf("the costs of the last 30 days do not recommend %s", b.Name)}
}

// allTaken returns what was taken for a team, or for all teams that the caller sees, oldest first.
func (d *Service) allTaken(ctx context.Context, c identity.Caller, team string) (list []taken, err error) {
	err = d.acts(ctx, takeRoute, func(act identity.Act, _ time.Time) {
		t := taken{who: act.Who}
		if json.Unmarshal([]byte(act.Detail), &t) != nil || team != "" && t.Team != team {
			return
		}
		of := t.Team
		if of == "" {
			of = identity.Everywhere // it compares the costs of all teams
		}
		if c.Role(of) >= identity.Viewer {
			list = append(list, t)
		}
	})
	return list[max(0, len(list)-mostTaken):], err
}

// Taken compares what recommendations were expected to save with what they have saved.
func (d *Service) Taken(w http.ResponseWriter, r *http.Request) {
	c, team := auth.CallerOf(r), r.URL.Query().Get("team")
	if team != "" && c.Role(team) < identity.Viewer {
		unknownTeam(w, team)
		return
	}
	made, err := d.allTaken(r.Context(), c, team)
	if err != nil {
		reports.Unread(w, "cannot read the log", err)
		return
	}
	slices.Reverse(made)
	list, err := d.compare(r.Context(), c, made)
	if err != nil {
		reports.Unread(w, "cannot read the ledger", err)
		return
	}
	reply.JSON(w, reply.List(list))
}

// compare measures each recommendation by the costs before and since.
func (d *Service) compare(ctx context.Context, c identity.Caller, made []taken) (list []client.TakenRecommendation,
	err error) {
	now := d.now()
	for i := range made {
		t := &made[i]
		costs, jobs, err := d.around(ctx, c, t, now)
		if err != nil {
			return nil, err
		}
		o := recommend.Measure(&t.Taken, t.At, now, costs, jobs)
		list = append(list, client.TakenRecommendation{Name: t.Name, Team: t.Team, Currency: t.Currency, At: t.At, Who: t.who,
			Days: o.Days, Over: o.Over, Monthly: o.Monthly, Expected: o.Expected, Unit: string(recommend.UnitsOf(t.Name)),
			Before: o.Before, Cost: o.Cost, Saved: o.Saved})
	}
	return list, nil
}

// around returns the costs of a team before and after it took a recommendation, and their jobs. Its reading is bounded:
// it covers at most two months.
func (d *Service) around(ctx context.Context, c identity.Caller, t *taken, now time.Time) (costs []recommend.Cost,
	jobs map[string]recommend.Job, err error) {
	end := t.At.Add(recommend.Month)
	if now.Before(end) {
		end = now
	}
	jobs = map[string]recommend.Job{}
	spans := []charge.Span{{Since: t.At.Add(-t.Span), Until: t.At}}
	if end.After(t.At) {
		spans = append(spans, charge.Span{Since: t.At, Until: end})
	}
	err = d.Books.EachChargeIn(ctx, c, spans, func(x charge.Charge) error {
		if x.Currency == t.Currency && (t.Team == "" || x.Owner.Team == t.Team) {
			jobs[x.Owner.Job] = recommend.Job{}
			costs = append(costs, costOf(&x))
		}
		return nil
	})
	if err == nil {
		err = d.knowJobs(ctx, jobs)
	}
	return costs, jobs, err
}

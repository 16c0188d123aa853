package savings

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/control/replay"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/view"
	"scrimp/internal/work/waste"
)

// applyRoute is the name of the route in the audit trail.
const applyRoute = "POST /v1/waste/{id}/apply"

// Apply carries out the action of a finding. The audit trail records it with the promised saving.
func (d *Service) Apply(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.ApplyWaste](w, r)
	if !ok {
		return
	}
	back, no := spanOf(b.Since)
	if no != nil {
		no.Answer(w)
		return
	}
	c, id := auth.CallerOf(r), r.PathValue("id")
	f, err := d.read(r.Context(), c, back)
	if err != nil {
		reports.Unread(w, "cannot read the ledger", err)
		return
	}
	list := waste.Find(f.in).Findings
	at := slices.IndexFunc(list, func(x waste.Finding) bool { return x.ID == id })
	if at < 0 {
		d.missing(r.Context(), c, id).Answer(w)
		return
	}
	x := list[at]
	body, no := eventOf(c, x)
	if no != nil {
		no.Answer(w)
		return
	}
	detail, err := json.Marshal(x.Promise())
	if err == nil {
		err = d.Gate.ProposeWith(r, x.ID, string(detail), d.Gate.Event(r, body))
	}
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	reply.JSON(w, findingOf(x))
}

// missing returns why there is no finding with the ID.
func (d *Service) missing(ctx context.Context, c identity.Caller, id string) *reply.Refusal {
	made, err := d.decisions(ctx, c, d.now().Add(-historyBack))
	if err != nil {
		return &reply.Refusal{Status: http.StatusServiceUnavailable, Title: "cannot read the log", Fix: "ask again",
			Err: err}
	}
	for _, x := range slices.Backward(made) {
		if x.ID == id {
			return &reply.Refusal{Status: http.StatusConflict, Field: "id",
				Title: fmt.Sprintf("%.40s is already applied, at %s UTC by %s", id, x.at.UTC().Format("2006-01-02 15:04"), x.who),
				Fix:   "scrimp waste history says what it has saved"}
		}
	}
	return &reply.Refusal{Status: http.StatusNotFound, Field: "id", Title: fmt.Sprintf("there is no finding %.40q", id),
		Fix: "scrimp waste lists the findings: this one has ended, or you listed it with another --since; a bill line of " +
			"--bill is advice, which you carry out yourself"}
}

// eventOf returns the event of a finding's action, or why the caller cannot have it.
func eventOf(c identity.Caller, x waste.Finding) (core.Body, *reply.Refusal) {
	team, least := x.Team, identity.Operator
	if team == "" {
		team, least = identity.Everywhere, identity.Admin
	}
	switch {
	case x.Effect == "":
		return nil, &reply.Refusal{Status: http.StatusConflict, Field: "id", Title: "scrimp cannot do this for you",
			Fix: "do it yourself: " + x.Command}
	case c.Role(team) < least:
		no := &reply.Refusal{Status: http.StatusForbidden, Fix: "ask somebody who has it, or an admin for the role",
			Title: fmt.Sprintf("this needs the role %s of %s, and %s has %s", least, nameOf(team), c.User, c.Role(team))}
		if c.Most != identity.Nobody && c.Most < least {
			no.Fix = fmt.Sprintf("this token is cut to %s: make one that is not, with scrimp tokens new", c.Most)
		}
		return nil, no
	case x.Kind == waste.FailingSchedule:
		return core.GroupClosed{Group: x.About, Members: state.StopMembers}, nil
	}
	return core.MachineReleased{Instance: x.About}, nil
}

func nameOf(team string) string {
	if team == identity.Everywhere {
		return "all teams"
	}
	return "the team " + team
}

const (
	// historyBack is how far back decisions are listed, and historyMost how many.
	historyBack = 400 * 24 * time.Hour
	historyMost = 200
)

// decision is an applied finding with its market time.
type decision struct {
	waste.Promise
	who string
	at  time.Time
}

// decisions reads the applied findings of the teams that the caller sees from the audit trail, oldest first.
func (d *Service) decisions(ctx context.Context, c identity.Caller, since time.Time) (list []decision, err error) {
	err = d.acts(ctx, applyRoute, func(act identity.Act, at time.Time) {
		x := decision{who: act.Who, at: at}
		if !at.Before(since) && json.Unmarshal([]byte(act.Detail), &x.Promise) == nil && c.Role(x.Team) >= identity.Viewer {
			list = append(list, x)
		}
	})
	return list[max(0, len(list)-historyMost):], err
}

// acts calls f with the acts on a route that were done and their market times, oldest first.
func (d *Service) acts(ctx context.Context, route string, f func(act identity.Act, at time.Time)) error {
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
			if b, ok := e.Body.(core.Audited); ok && b.Act.Outcome == "done" {
				f(b.Act, e.At)
			}
		}
	}
}

// History compares what was promised with what was saved, from the ledger.
func (d *Service) History(w http.ResponseWriter, r *http.Request) {
	c, now := auth.CallerOf(r), d.now()
	made, err := d.decisions(r.Context(), c, now.Add(-historyBack))
	if err != nil {
		reports.Unread(w, "cannot read the log", err)
		return
	}
	list := []client.WasteDecision{}
	if len(made) == 0 {
		reply.JSON(w, list)
		return
	}
	f := &facts{}
	d.fleet(f, c)
	of, err := d.groups(r.Context(), f)
	if err != nil {
		reports.Unread(w, "cannot read the log", err)
		return
	}
	var rows []waste.Row
	err = d.Books.EachCharge(r.Context(), c, charge.Span{Since: made[0].at.Truncate(time.Hour)},
		func(x charge.Charge) error {
			rows = append(rows, rowOf(&x, of))
			return nil
		})
	if err != nil {
		reports.Unread(w, "cannot read the ledger", err)
		return
	}
	for _, x := range made {
		o := waste.Measure(x.Promise, x.at, now, rows, of)
		list = append(list, client.WasteDecision{ID: x.ID, At: x.at, Who: x.who, Kind: string(x.Kind), Team: x.Team,
			About: x.About, Action: string(x.Action), Currency: x.Currency, Promised: x.Saving,
			Days: o.Span.Hours() / 24, Over: o.Over, Due: o.Due, Cost: o.Cost, Saved: o.Saved})
	}
	reply.JSON(w, list)
}

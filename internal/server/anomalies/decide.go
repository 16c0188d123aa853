package anomalies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/incident"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
)

// ahead bounds how far a snooze and a plan reach.
const ahead = 366 * 24 * time.Hour

// Snooze hides an incident, and later ones of its kind about the same, for a time.
func (d *Service) Snooze(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.SnoozeAnomaly](w, r)
	if !ok {
		return
	}
	d.decide(w, r, func(rec *record, now time.Time) *reply.Refusal {
		var no *reply.Refusal
		rec.Until, no = moment("until", b.Until, now, now)
		if no == nil && (rec.Until.Before(now) || rec.Until.Sub(now) > ahead) {
			no = &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "until",
				Title: "until is not within the year to come", Fix: "write a later time, or now to end a snooze"}
		}
		return no
	})
}

// Dismiss records that an incident was no problem.
func (d *Service) Dismiss(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.AnswerAnomaly](w, r)
	if !ok {
		return
	}
	d.decide(w, r, func(rec *record, _ time.Time) *reply.Refusal {
		if rec.Why = strings.TrimSpace(b.Why); rec.Why == "" {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "why", Title: "why is empty",
				Fix: "say why it is no problem: the threshold of its kind rises for the whole team"}
		}
		return nil
	})
}

// Confirm records that an incident was a problem.
func (d *Service) Confirm(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.AnswerAnomaly](w, r)
	if !ok {
		return
	}
	d.decide(w, r, func(rec *record, _ time.Time) *reply.Refusal {
		rec.Why = strings.TrimSpace(b.Why)
		return nil
	})
}

// decide records an act about the incident that the path names. complete fills the record, or says what is wrong.
func (d *Service) decide(w http.ResponseWriter, r *http.Request, complete func(*record, time.Time) *reply.Refusal) {
	c, name := auth.CallerOf(r), r.PathValue("id")
	s, a, err := d.named(r.Context(), c, name)
	switch {
	case err != nil:
		reports.Unread(w, "cannot read the ledger", err)
		return
	case a == nil:
		reply.FieldProblem(w, http.StatusNotFound, "id", fmt.Sprintf("there is no incident %.40q that you may see", name),
			"scrimp anomalies --since 90d --all lists the incidents", nil)
		return
	}
	rec := record{Kind: a.Kind, Team: a.Team, About: a.About, Currency: a.Currency, Since: a.Since}
	no := needs(c, a.Team)
	if no == nil {
		no = complete(&rec, s.now)
	}
	if no != nil {
		no.Answer(w)
		return
	}
	detail, err := json.Marshal(rec)
	if err == nil {
		err = d.Gate.ProposeWith(r, name, string(detail))
	}
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	if s.said, err = d.read(r.Context()); err != nil {
		reports.Unread(w, "cannot read the log", err)
		return
	}
	reply.JSON(w, s.show(a))
}

// named returns the incident with a name, and the search that found it: the shortest one, since most names are of the
// last days. nil: there is none that the caller may see.
func (d *Service) named(ctx context.Context, c identity.Caller, name string) (*search, *incident.Alert, error) {
	if !strings.HasPrefix(name, "a-") {
		return nil, nil, nil
	}
	for _, back := range []time.Duration{sinceStandard, 30 * 24 * time.Hour, sinceMost} {
		s, err := d.find(ctx, c, "", back)
		if err != nil {
			return nil, nil, err
		}
		for i := range s.alerts {
			if a := &s.alerts[i]; a.Name() == name {
				return s, a, nil
			}
		}
	}
	return nil, nil, nil
}

// needs returns why the caller may decide nothing about the alerts of a team; nil: the caller may.
func needs(c identity.Caller, team string) *reply.Refusal {
	least, of := identity.Operator, "the team "+team
	if team == "" {
		team, least, of = identity.Everywhere, identity.Admin, "all teams"
	}
	if c.Role(team) >= least {
		return nil
	}
	no := &reply.Refusal{Status: http.StatusForbidden, Fix: "ask somebody who has it, or an admin for the role",
		Title: fmt.Sprintf("this needs the role %s of %s, and %s has %s", least, of, c.User, c.Role(team))}
	if c.Most != identity.Nobody && c.Most < least {
		no.Fix = fmt.Sprintf("this token is cut to %s: make one that is not, with scrimp tokens new", c.Most)
	}
	return no
}

// moment parses a time or a day in UTC, now, or a span that is counted from a time.
func moment(field, text string, from, now time.Time) (time.Time, *reply.Refusal) {
	text = strings.TrimSpace(text)
	if text == "now" {
		return now, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	var v spec.Deadline
	err := v.UnmarshalText([]byte(text))
	if err == nil && v.IsZero() {
		err = errors.New("it is empty")
	}
	if err != nil {
		return time.Time{}, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field,
			Title: fmt.Sprintf("%s is not a time: %.40q", field, text), Err: err,
			Fix: "write a time such as 2026-12-01T18:00Z, a day such as 2026-12-01, or a span such as 3d"}
	}
	return v.Resolve(from).UTC(), nil
}

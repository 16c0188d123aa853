// Package anomalies finds incidents in spending, and keeps what people say about them: that one is no problem, that it
// was one, that it may wait, or that unusual spending is planned.
package anomalies

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/incident"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/outbox"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/server/secret"
	"scrimp/internal/view"
)

const (
	sinceStandard = 7 * 24 * time.Hour
	sinceMost     = 90 * 24 * time.Hour
	// learn is the length of history that incidents are compared with.
	learn = 28 * 24 * time.Hour
)

// Service answers requests about incidents.
type Service struct {
	Gate    *auth.Gate
	Control *control.Control
	Books   *reports.Books
	View    *view.View // the audit trail
	HasTeam func(name string) bool
	// HasTeams reports whether the installation has any team.
	HasTeams func() bool
	Meta     Meta         // keeps the alerts
	Vault    secret.Vault // seals their receivers
	Outbox   *outbox.Outbox
	Log      *slog.Logger

	alerting sync.Mutex // serializes changes of alerts, and of what they have reported
	reports  making
	counts   counts
}

// search is the result of a search for incidents.
type search struct {
	since, now time.Time
	alerts     []incident.Alert
	said       *said
	teams      map[string]bool // that have costs
}

// sinceOf parses the span of a list; 0: it is too long or not above zero.
func sinceOf(text string) (time.Duration, error) {
	if text == "" {
		return sinceStandard, nil
	}
	back, err := spec.ParseDuration(text)
	if back > sinceMost {
		back = 0
	}
	return back, err
}

// List lists the incidents of a span.
func (d *Service) List(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := sinceOf(q.Get("since"))
	if err != nil || back <= 0 {
		reply.FieldProblem(w, http.StatusBadRequest, "since", "since is not a span of up to 90 days",
			"write one such as 24h or 7d", err)
		return
	}
	if all := q.Get("all"); all != "" && all != "1" {
		reply.FieldProblem(w, http.StatusBadRequest, "all", "all is not 1", "write all=1, or leave it out", nil)
		return
	}
	c, team := auth.CallerOf(r), q.Get("team")
	if team != "" && c.Role(team) < identity.Viewer {
		unknownTeam(w, team)
		return
	}
	s, err := d.find(r.Context(), c, team, back)
	if err != nil {
		reports.Unread(w, "cannot read the ledger", err)
		return
	}
	if team != "" && !d.HasTeam(team) && !s.teams[team] {
		unknownTeam(w, team)
		return
	}
	v := client.Anomalies{Since: s.since, Until: s.now, Anomalies: []client.Anomaly{}, Hidden: map[string]int{},
		Thresholds: s.said.thresholds(s.now, func(of string) bool {
			return (team == "" || team == of) && c.Role(of) >= identity.Viewer
		})}
	for i := range s.alerts {
		a := s.show(&s.alerts[i])
		if q.Get("all") == "" && isHidden(&a) {
			v.Hidden[a.State]++
			continue
		}
		v.Anomalies = append(v.Anomalies, a)
	}
	slices.SortStableFunc(v.Anomalies, func(a, b client.Anomaly) int { return b.Found.Compare(a.Found) })
	reply.JSON(w, v)
}

// find replays the charges of a span and of the month before, with what people have said, so the same log always gives
// the same incidents.
func (d *Service) find(ctx context.Context, c identity.Caller, team string, back time.Duration) (*search, error) {
	now := d.now()
	s := &search{since: now.Add(-back), now: now, teams: map[string]bool{}}
	var err error
	if s.said, err = d.read(ctx); err != nil {
		return nil, err
	}
	var rows []incident.Row
	span := charge.Span{Since: s.since.Add(-learn).Truncate(time.Hour)}
	err = d.Books.EachCharge(ctx, c, span, func(c charge.Charge) error {
		s.teams[c.Owner.Team] = true
		if !c.Corrects && (team == "" || c.Owner.Team == team) {
			rows = append(rows, reports.IncidentRow(&c, now))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.said.settings.Until = now
	for _, a := range incident.FindWith(rows, &s.said.settings) {
		if a.Until.IsZero() || a.Until.After(s.since) {
			s.alerts = append(s.alerts, a)
		}
	}
	return s, nil
}

// now returns the present market time: no earlier than the last event, whose costs count.
func (d *Service) now() time.Time {
	now := d.Control.Now()
	d.Control.Read(func(m *core.Machine) {
		if m.Now().After(now) {
			now = m.Now()
		}
	})
	return now.UTC()
}

// unknownTeam answers that the caller sees no team of the name.
func unknownTeam(w http.ResponseWriter, team string) {
	reply.FieldProblem(w, http.StatusNotFound, "team", fmt.Sprintf("there is no team %.60q that you may see", team),
		"scrimp teams lists the teams, and scrimp costs --by team those with costs", nil)
}

// show returns an alert as the API shows it.
func (s *search) show(a *incident.Alert) client.Anomaly {
	v := client.Anomaly{Name: a.Name(), Kind: string(a.Kind), Team: a.Team, Project: a.Project,
		About: cmp.Or(a.About, a.Team), Since: a.Since, Found: a.Found, AtStake: a.AtStake, AtFound: a.AtFound,
		Currency: a.Currency, Why: a.Why, Jobs: reply.List(a.Jobs), Threshold: incident.Threshold(a.Kind, a.Factor),
		Factor: a.Factor}
	if !a.Until.IsZero() {
		v.Until = &a.Until
	}
	if of, is := s.said.answers[v.Name]; is {
		v.Answer = &of.AnomalyAnswer
	}
	if z, is := s.said.snoozes[keyOf(a)]; is && z.until.After(s.now) && !a.Found.Before(z.since) {
		v.SnoozedUntil = &z.until
	}
	switch {
	case a.Planned:
		v.State = client.AnomalyPlanned
	case v.Answer != nil && !v.Answer.Confirmed:
		v.State = client.AnomalyDismissed
	case v.SnoozedUntil != nil:
		v.State = client.AnomalySnoozed
	case v.Answer != nil:
		v.State = client.AnomalyConfirmed
	}
	return v
}

// key identifies what an incident is about.
type key struct {
	kind        incident.Kind
	team, about string
	currency    money.Currency
}

func keyOf(a *incident.Alert) key { return key{a.Kind, a.Team, a.About, a.Currency} }

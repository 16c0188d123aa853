package books

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/incident"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

const (
	anomaliesSince = 7 * 24 * time.Hour
	anomaliesMost  = 90 * 24 * time.Hour
	// anomaliesLearn is the length of history that incidents are compared with.
	anomaliesLearn = 28 * 24 * time.Hour
)

// Anomalies lists the incidents of a span. It replays the charges of the span and of the month before, so the same
// ledger always gives the same incidents.
func (b *Books) Anomalies(w http.ResponseWriter, r *http.Request) {
	team, back := r.URL.Query().Get("team"), anomaliesSince
	if text := r.URL.Query().Get("since"); text != "" {
		var err error
		if back, err = spec.ParseDuration(text); err != nil || back <= 0 || back > anomaliesMost {
			reply.FieldProblem(w, http.StatusBadRequest, "since", "since is not a span of up to 90 days",
				"write one such as 24h or 7d", err)
			return
		}
	}
	until := b.Control.Now().UTC()
	v := client.Anomalies{Since: until.Add(-back), Until: until, Anomalies: []client.Anomaly{}}
	c := auth.CallerOf(r)
	if team != "" && c.Role(team) < identity.Viewer {
		unknownTeam(w, team)
		return
	}
	var rows []incident.Row
	known := team == "" || b.HasTeam(team)
	span := charge.Span{Since: v.Since.Add(-anomaliesLearn).Truncate(time.Hour)}
	err := b.EachCharge(r.Context(), c, span, func(c charge.Charge) error {
		known = known || c.Owner.Team == team
		if !c.Corrects && (team == "" || c.Owner.Team == team) {
			rows = append(rows, IncidentRow(&c, until))
		}
		return nil
	})
	if err != nil {
		Unread(w, "the ledger was not read", err)
		return
	}
	if !known {
		unknownTeam(w, team)
		return
	}
	for _, a := range incident.Find(rows) {
		if a.Until.IsZero() || a.Until.After(v.Since) {
			v.Anomalies = append(v.Anomalies, anomalyOf(a))
		}
	}
	slices.SortStableFunc(v.Anomalies, func(a, b client.Anomaly) int { return b.Found.Compare(a.Found) })
	reply.JSON(w, v)
}

// unknownTeam answers that the caller sees no team of the name.
func unknownTeam(w http.ResponseWriter, team string) {
	reply.FieldProblem(w, http.StatusNotFound, "team", fmt.Sprintf("there is no team %.60q that you may see", team),
		"scrimp teams lists the teams, and scrimp costs --by team those with costs", nil)
}

// IncidentRow converts a charge for the detection of incidents. A charge without a period has the whole hour of its
// booking; the part after now is cut off, or what goes on now would seem to have ended.
func IncidentRow(c *charge.Charge, now time.Time) incident.Row {
	o := &c.Owner
	r := incident.Row{Begin: c.Begin, End: c.End, Amount: c.Amount, Currency: c.Currency, Category: c.Category, Use: c.Use,
		Price: c.Price, Machine: c.Timed && (c.Category == ledger.Compute || c.Category == ledger.Fixed),
		Team: o.Team, Project: o.Project, Group: o.Group, Job: o.Job, Attempt: o.Attempt, Instance: o.Instance,
		Provider: c.Provider, Region: c.Region, SKU: c.SKU, Capacity: string(c.Capacity), Planned: c.Planned}
	if o.Group == "" {
		r.Series = c.Name
	}
	if r.End.After(now) && !r.Begin.After(now) {
		r.End = now
	}
	return r
}

func anomalyOf(a incident.Alert) client.Anomaly {
	v := client.Anomaly{Kind: string(a.Kind), Team: a.Team, Project: a.Project, About: cmp.Or(a.About, a.Team),
		Since: a.Since, Found: a.Found, AtStake: a.AtStake, AtFound: a.AtFound,
		Currency: a.Currency, Why: a.Why, Jobs: a.Jobs}
	if v.Jobs == nil {
		v.Jobs = []string{}
	}
	if !a.Until.IsZero() {
		v.Until = &a.Until
	}
	return v
}

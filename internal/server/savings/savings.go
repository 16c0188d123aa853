// Package savings finds waste in the ledger and the fleet, applies what a user decides about it, and compares what was
// promised with what was saved.
package savings

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/incident"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/engine"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/view"
	"scrimp/internal/work/waste"
)

const (
	sinceStandard = "30d"
	sinceMost     = 90 * 24 * time.Hour
)

// Service answers requests about waste.
type Service struct {
	Gate    *auth.Gate
	Control *control.Control
	Books   *reports.Books
	View    *view.View // the audit trail
	// Telemetry returns the telemetry of a job's machines; nil: not known.
	Telemetry func(ctx context.Context, j *core.Job) (*receipt.Telemetry, error)
	HasTeam   func(name string) bool
	Engines   []engine.Engine
	// HasTeams reports whether the installation has any team.
	HasTeams func() bool
	// Answers returns what people have answered about incidents: it moves the thresholds of their kinds.
	Answers func(ctx context.Context) ([]incident.Answer, error)
	// Cheaper simulates both jobs of each pair, whose checkpoints take the given time, and returns the share of its cost
	// that the second saves; nil: unknown.
	Cheaper func(r *http.Request, pairs [][2]spec.Job, saves []time.Duration) []*float64
}

// spanOf parses a span, or returns what is wrong with it.
func spanOf(text string) (time.Duration, *reply.Refusal) {
	back, err := spec.ParseDuration(cmp.Or(text, sinceStandard))
	if err != nil || back <= 0 || back > sinceMost {
		return 0, &reply.Refusal{Status: http.StatusBadRequest, Field: "since",
			Title: fmt.Sprintf("%.40q is not a span above 0 and up to 90 days", text), Fix: "write one such as 7d or 90d"}
	}
	return back, nil
}

// List lists the waste of a span.
func (d *Service) List(w http.ResponseWriter, r *http.Request) {
	back, no := spanOf(r.URL.Query().Get("since"))
	if no != nil {
		no.Answer(w)
		return
	}
	c, team := auth.CallerOf(r), r.URL.Query().Get("team")
	of := team
	if team == client.NoTeam {
		of = identity.Everywhere // only a role in all teams shows what belongs to none
	}
	if team != "" && c.Role(of) < identity.Viewer {
		unknownTeam(w, team)
		return
	}
	f, err := d.read(r.Context(), c, back)
	if err != nil {
		reports.Unread(w, "cannot read the ledger", err)
		return
	}
	if team != "" && team != client.NoTeam && !d.HasTeam(team) && !f.teams[team] {
		unknownTeam(w, team)
		return
	}
	if team != client.NoTeam {
		f.in.Team = team
		reply.JSON(w, f.answer(waste.Find(f.in)))
		return
	}
	rep := waste.Find(f.in)
	rep.Findings = slices.DeleteFunc(rep.Findings, func(x waste.Finding) bool { return x.Team != "" })
	rep.Totals = waste.Sum(rep.Findings)
	reply.JSON(w, f.answer(rep))
}

// unknownTeam answers that the caller sees no team of the name.
func unknownTeam(w http.ResponseWriter, team string) {
	reply.FieldProblem(w, http.StatusNotFound, "team", fmt.Sprintf("there is no team %.60q that you may see", team),
		"scrimp teams lists the teams, and scrimp costs --by team those with costs", nil)
}

// answer converts a report for the API.
func (f *facts) answer(rep waste.Report) client.Waste {
	v := client.Waste{Since: rep.Since, Until: rep.Until, Short: rep.Short, Empty: f.in.Began.IsZero(),
		Measured: rep.Measured, Recurring: f.recurring, Findings: []client.WasteFinding{}, Totals: []client.WasteTotal{}}
	for _, x := range rep.Findings {
		v.Findings = append(v.Findings, findingOf(x))
	}
	for _, t := range rep.Totals {
		v.Totals = append(v.Totals, client.WasteTotal(t))
	}
	return v
}

func findingOf(x waste.Finding) client.WasteFinding {
	return client.WasteFinding{ID: x.ID, Kind: string(x.Kind), Team: x.Team, About: x.About, Currency: x.Currency,
		Cost: x.Cost, Waste: x.Waste, Monthly: x.Monthly, Saving: x.Saving, Evidence: x.Evidence, Action: string(x.Action),
		Command: x.Command, Effect: x.Effect, Jobs: reply.List(x.Jobs)}
}

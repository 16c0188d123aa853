package server

import (
	"slices"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/jobs/totals"
)

// jobFilters are the parameters that select jobs.
var jobFilters = []string{"live: 1 for those that wait or run",
	"attention: 1 for those that wait, are late, or meet their deadline with a chance below 90 %",
	"state: of these states, with commas between: held, queued, running, paused, succeeded, failed, stopped or cancelled",
	"user: who submitted them; (none) for those of nobody", "team: whose they are; (none) for those of no team",
	"project: whose they are, likewise", "engine: of their newest machines; (none) for those that never had one",
	"name: pattern of their name or id, such as lm-*", "group: array whose members they are", "session: 1 for sessions",
	"tag: KEY or KEY=VALUE that they have, or KEY=(none) for those without it; may be repeated",
	"since: submitted at that time of the wall or later, such as 2026-12-01T18:00:00Z"}

var ofTotals = of(func(s *Server) *totals.Service {
	return &totals.Service{Control: s.control, Odds: &s.odds, Names: s.gate.People.Names}
})

// totalsRoute sums the jobs of a list.
func totalsRoute() route {
	return route{"GET", "/v1/totals", identity.Viewer, anyTeam, true,
		"Sum the jobs that GET /v1/jobs lists by a property: how many there are in each state, what they have spent, cost " +
			"an hour now and will cost", nil, client.JobTotals{}, "",
		slices.Concat([]string{"by: team, project, state, engine, user or tag:KEY (default: team)"}, jobFilters),
		ofTotals((*totals.Service).Get)}
}

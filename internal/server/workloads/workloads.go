// Package workloads answers what a month of each kind of workload costs.
package workloads

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/monthly"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/work/groups"
)

// Service answers the requests.
type Service struct {
	Control *control.Control
	Books   *reports.Books
	HasTeam func(team string) bool // whether a team exists; one that does not may have costs
}

const (
	months     = 12
	mostMonths = 120
)

// Monthly answers with the report of the ledger's own history.
func (d *Service) Monthly(w http.ResponseWriter, r *http.Request) {
	n := months
	if text := r.URL.Query().Get("months"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > mostMonths {
			reply.FieldProblem(w, http.StatusBadRequest, "months", fmt.Sprintf("%.40q is not a number of months", text),
				fmt.Sprintf("write 1 to %d", mostMonths), nil)
			return
		}
	}
	caller, team := auth.CallerOf(r), r.URL.Query().Get("team")
	named := team != "" && team != client.NoTeam
	if named && caller.Role(team) < identity.Viewer { // "no costs" would be a figure of it
		unknownTeam(w, team)
		return
	}
	v, err := d.monthly(r.Context(), caller, n, charge.OnlyOf(map[string][]string{"team": {team},
		"project": {r.URL.Query().Get("project")}}))
	if err != nil {
		reports.Unread(w, "cannot read the ledger", err)
		return
	}
	if named && len(v.Workloads) == 0 && !d.HasTeam(team) {
		unknownTeam(w, team)
		return
	}
	reply.JSON(w, v)
}

// unknownTeam answers that the caller sees no team of the name.
func unknownTeam(w http.ResponseWriter, team string) {
	reply.FieldProblem(w, http.StatusNotFound, "team", fmt.Sprintf("there is no team %.60q that you may see", team),
		"scrimp teams lists the teams, and scrimp costs --by team those with costs", nil)
}

func (d *Service) monthly(ctx context.Context, caller identity.Caller, n int,
	only charge.Only) (client.MonthlyCosts, error) {
	now := d.Control.Now().UTC()
	v := client.MonthlyCosts{Until: now, Months: []client.CostMonth{}, Workloads: []client.WorkloadCost{}}
	began, some, err := d.Books.Began(ctx)
	if err != nil {
		return v, err
	}
	if !some {
		began = now // a running machine may have a cost that is not booked
	}
	report := monthly.New(now, began, n)
	v.Since = report.First
	for m, whole := range report.Whole() {
		v.Months = append(v.Months, client.CostMonth{Month: report.First.AddDate(0, m, 0).Format("2006-01"), Whole: whole})
	}
	err = d.Books.EachCharge(ctx, caller, charge.Span{Since: report.First}, func(c charge.Charge) error {
		if only.Has(&c) {
			report.Add(&c)
		}
		return nil
	})
	if err != nil {
		return v, err
	}
	jobs, err := d.jobs(ctx, report)
	if err != nil {
		return v, err
	}
	for _, k := range report.Workloads(func(job string) monthly.Job { return jobs[job] }) {
		v.Workloads = append(v.Workloads, client.WorkloadCost{Workload: k.Name, Currency: k.Currency, Spent: k.Spent,
			Months: k.Months, AMonth: k.AMonth, Runs: k.Runs, Ended: k.Ended, Succeeded: k.Succeeded, Median: k.Median,
			P90: k.P90, PerSuccess: k.PerSuccess, GPUHours: k.GPUHours, PerGPUHour: k.PerGPUHour,
			ListPerGPUHour: k.ListedHour})
	}
	return v, nil
}

// jobs says what the jobs of the report are.
func (d *Service) jobs(ctx context.Context, report *monthly.Report) (map[string]monthly.Job, error) {
	jobs, member := map[string]monthly.Job{}, map[string]string{}
	err := d.Books.EachJob(ctx, report.Jobs(), func(j *core.Job) {
		jobs[j.ID()] = monthly.Job{Workload: workload(j), Succeeded: j.State() == core.Succeeded,
			Ended: j.Priced() && !j.Submitted().Before(report.First)}
		if j.Terms().Group != "" && j.Terms().Stage == "" {
			member[j.ID()] = j.Terms().Group
		}
	})
	if err != nil || len(member) == 0 {
		return jobs, err
	}
	kinds, err := d.kinds(ctx, member)
	for id, group := range member {
		if kinds[group] == groups.Study {
			one := jobs[id]
			one.Workload = search
			jobs[id] = one
		}
	}
	return jobs, err
}

// kinds returns the kinds of the groups that the jobs are members of.
func (d *Service) kinds(ctx context.Context, member map[string]string) (map[string]groups.Kind, error) {
	kinds := map[string]groups.Kind{}
	var archived []string
	d.Control.ReadUncommitted(func(m *core.Machine) {
		for _, name := range member {
			if g := m.State().Group(name); g != nil {
				kinds[name] = g.Terms.Kind
			} else {
				archived = append(archived, name)
			}
		}
	})
	slices.Sort(archived)
	found, err := d.Control.FindGroups(ctx, slices.Compact(archived)...)
	for name, g := range found {
		kinds[name] = g.Kind
	}
	return kinds, err
}

const search = "search"

// workload says what a job that is not a trial is.
func workload(j *core.Job) string {
	t := j.Terms()
	switch {
	case t.Stage != "":
		return "pipeline stage"
	case t.Session != "" || t.JobKind == "interactive":
		return "session"
	case t.JobKind == "inference" || t.JobKind == "data":
		return t.JobKind
	}
	return "training"
}

package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// Each kind of workload costs what its jobs cost together, also once they are archived, and the caller's teams alone
// are counted.
func TestMonthlyCosts_EqualTheCostsOfTheirJobs(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	for i, kind := range []string{"experiment", "production", "inference", "data", "interactive"} {
		w.must("POST", "/v1/jobs", strings.Replace(aJob(kind, fmt.Sprint("team-", i%2)), `"command"`, `"kind":"`+kind+`","command"`, 1), nil)
	}
	w.must("POST", "/v1/groups", inStudy("study", "", ""), nil)
	w.must("POST", "/v1/groups", inArray("sweep", "", "0-1", ""), nil)
	w.began("sweep", 2)
	for n := range 5 + 2 + 3 { // jobs, tasks of the array, trials
		id, long := w.booting(1)[0], time.Duration(n+1)*10*time.Minute
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Minute)
		if strings.HasPrefix(id, "study") {
			w.says(id, 2, 4, float64(n))
		}
		w.event(core.AttemptEnded{Attempt: id, Message: 3, Reason: "completed"}, long)
		w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(long), Cause: "terminated"}, long)
	}
	w.groupOver("study")
	of := func(job string) string {
		switch name, _, _ := strings.Cut(job, "."); name {
		case "study":
			return "search"
		case "interactive":
			return "session"
		case "inference", "data":
			return name
		}
		return "training"
	}
	check := func() {
		t.Helper()
		var costs api.Costs
		w.must("GET", "/v1/costs?by=job", nil, &costs)
		want, runs := map[string]money.Amount{}, map[string]int{}
		for _, l := range costs.Lines {
			want[of(l.Name)] = want[of(l.Name)].Add(l.Spent)
			runs[of(l.Name)]++
		}
		var v client.MonthlyCosts
		w.must("GET", "/v1/costs/monthly", nil, &v)
		if len(v.Workloads) != 5 {
			t.Fatalf("%+v", v)
		}
		for _, k := range v.Workloads {
			months := money.Amount{}
			for _, a := range k.Months {
				months = months.Add(a)
			}
			if k.Spent != want[k.Workload] || months != k.Spent || k.Runs != runs[k.Workload] || k.Spent.Sign() <= 0 {
				t.Errorf("%s: %v in %d runs, the jobs cost %v in %d; its months %v", k.Workload, k.Spent, k.Runs,
					want[k.Workload], runs[k.Workload], months)
			}
			if k.Median == nil || k.P90.Cmp(*k.Median) < 0 || (k.PerSuccess == nil) != (k.Succeeded == 0) {
				t.Errorf("%+v", k)
			}
		}
	}
	check()
	w.archiveAll(3 * time.Hour)
	check()
	w.must("PUT", "/v1/teams/team-0", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "team-0", Role: identity.Viewer})
	rec, _ := w.ask("GET", "/v1/costs/monthly", ann, nil)
	if text := rec.Body.String(); rec.Code != 200 || !strings.Contains(text, `"inference"`) || strings.Contains(text, `"data"`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	var v client.MonthlyCosts
	w.must("GET", "/v1/costs/monthly?months=1&team=team-1", nil, &v)
	if len(v.Workloads) != 2 {
		t.Errorf("team-1: %+v", v.Workloads)
	}
	for team, who := range map[string]string{"team-1": ann, "team-9": auth.OwnerName, "team-0": ann, "(none)": auth.OwnerName} {
		want := map[bool]int{true: 404, false: 200}[team == "team-1" || team == "team-9"]
		if rec, p := w.ask("GET", "/v1/costs/monthly?team="+team, who, nil); rec.Code != want || want == 404 && (p.Field != "team" || p.Fix == "") {
			t.Errorf("%s of %s: %d %s", team, who, rec.Code, rec.Body)
		}
	}
	for _, bad := range []string{"0", "121", "x", "1e9"} {
		if rec, p := w.ask("GET", "/v1/costs/monthly?months="+bad, auth.OwnerName, nil); rec.Code != 400 || p.Field != "months" || p.Fix == "" {
			t.Errorf("%s: %d %+v", bad, rec.Code, p)
		}
	}
}

// A ledger without costs answers an empty report.
func TestMonthlyCosts_OfNothingAreEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var v client.MonthlyCosts
	w.must("GET", "/v1/costs/monthly", nil, &v)
	if len(v.Workloads) != 0 || len(v.Months) != 1 || v.Months[0].Whole {
		t.Errorf("%+v", v)
	}
}

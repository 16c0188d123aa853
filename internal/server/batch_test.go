package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// A batch submits all of its jobs or none, and each key submits once, in a batch or alone.
func TestBatch_IsAllOrNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "vision", Role: identity.Submitter})
	batch := func(keys ...string) string {
		var jobs []string
		for _, k := range keys {
			jobs = append(jobs, fmt.Sprintf(`{"key":%q,%s`, k, aJob("job-"+k, "")[1:]))
		}
		return "[" + strings.Join(jobs, ",") + "]"
	}
	count := func() int {
		var all []api.Job
		w.must("GET", "/v1/jobs", nil, &all)
		return len(all)
	}
	for range 2 {
		rec, p := w.ask("POST", "/v1/jobs/batch", ann, batch("a", "b", "c"))
		if rec.Code != 200 || strings.Count(rec.Body.String(), `"id":"job-`) != 3 ||
			!strings.Contains(rec.Body.String(), `"team":"vision"`) {
			t.Fatalf("%d %+v %s", rec.Code, p, rec.Body)
		}
	}
	if rec, _ := w.ask("POST", "/v1/jobs", ann, `{"key":"b",`+aJob("job-b", "")[1:]); rec.Code != 200 ||
		!strings.Contains(rec.Body.String(), `"id":"job-b"`) {
		t.Errorf("alone the key is another: %s", rec.Body)
	}
	if n := count(); n != 3 {
		t.Fatalf("%d jobs, want 3", n)
	}
	for _, body := range []string{`{"key":"b",` + aJob("another", "")[1:],
		`{"key":"b","secrets":{"A":"x"},` + aJob("job-b", "")[1:]} {
		if rec, p := w.ask("POST", "/v1/jobs", ann, body); rec.Code != http.StatusConflict || p.Field != "key" {
			t.Errorf("the key of one of a batch with something else: %d %+v", rec.Code, p)
		}
	}
	var trail api.Audit
	w.must("GET", "/v1/audit", nil, &trail)
	acts := 0
	for _, a := range trail.Acts {
		if strings.Contains(a.Detail, "3 jobs, from job-a to job-c, ") && a.Object == "job-a" && a.Who == "ann" &&
			a.Outcome == "done" {
			acts++
		}
	}
	if acts != 1 {
		t.Errorf("%d acts are on record for the batch, want 1: %+v", acts, trail.Acts)
	}
	secret := `[{"secrets":{"A":"x"},` + aJob("s", "")[1:] + `]`
	for body, want := range map[string]int{
		`[]`: 422, batch("d", "d"): 400, secret: 422,
		"[" + aJob("fine", "") + "," + aJob("theirs", "text") + "]":                    http.StatusForbidden,
		"[" + aJob("fine", "") + `,{"spec":{"name":"no command"}}]`:                    422,
		"[" + aJob("fine", "") + `,{"key":"a",` + aJob("something-else", "")[1:] + "]": http.StatusConflict,
		"[" + strings.Repeat(aJob("many", "")+",", 1000) + aJob("many", "") + "]":      422,
	} {
		if rec, p := w.ask("POST", "/v1/jobs/batch", ann, body); rec.Code != want || p.Fix == "" {
			t.Errorf("%.80s: %d %+v, want %d", body, rec.Code, p, want)
		}
	}
	if n := count(); n != 3 {
		t.Errorf("%d jobs after batches that were refused, want 3", n)
	}
}

// A batch cannot exceed a limit that its jobs could not exceed one by one, and no job may lack a required tag.
func TestBatch_MeetsTheLimitsOfItsJobsOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: dollars(50), Jobs: new(4)})
	batch := func(n, usd int, rest string) string {
		var jobs []string
		for i := range n {
			jobs = append(jobs, costing(fmt.Sprintf("j%d", i), "a", fmt.Sprintf(`,"budget":{"dollars":"%d"}%s`, usd, rest)))
		}
		return "[" + strings.Join(jobs, ",") + "]"
	}
	post := func(body string, want int) {
		t.Helper()
		if rec, p := w.ask("POST", "/v1/jobs/batch", auth.OwnerName, body); rec.Code != want ||
			want != 200 && (p.Fix == "" || !strings.HasPrefix(p.Field, "[")) {
			t.Errorf("%d %+v, want %d", rec.Code, p, want)
		}
	}
	post(batch(5, 12, ""), http.StatusPaymentRequired)
	post(batch(5, 1, ""), http.StatusForbidden) // one too many
	post("["+costing("open", "a", "")+"]", http.StatusPaymentRequired)
	w.must("PUT", "/v1/budgets", api.SetBudget{Tag: "env", Values: []string{"dev"}}, nil)
	post(batch(1, 1, ""), 422)
	post(batch(4, 12, `,"tags":{"env":"dev"}`), 200)
	post(batch(1, 2, `,"tags":{"env":"dev"}`), http.StatusForbidden)
	var v api.Budgets
	w.must("GET", "/v1/budgets", nil, &v)
	if u := v.Limits[0].Use; u.Jobs != 4 || u.Held != *dollars(48) {
		t.Errorf("%+v, want 4 jobs and $48", u)
	}
}

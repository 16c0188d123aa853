package server

import (
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// Every number in a request has a bound.
func TestRequests_EveryNumberHasABound(t *testing.T) {
	t.Parallel()
	for _, r := range table() {
		if r.In == nil {
			continue
		}
		for _, missing := range limits.Unbounded(reflect.TypeOf(r.In)) {
			t.Errorf("%s %s: %s has no bound: add it to kinds in internal/wire/limits", r.Method, r.Path, missing)
		}
	}
}

// Numbers that overflow a sum, a duration or a float are refused with the name of their field, on every path, and
// the server goes on.
func TestRequests_HugeNumbersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: dollars(50)})
	w.must("POST", "/v1/jobs", costing("small", "a", `,"budget":{"dollars":"12"}`), nil)
	before := w.control.Durable()
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "/v1/jobs", costing("b1", "b", `,"budget":"$150000000000000000000000000"`), "budget"},
		{"POST", "/v1/jobs", costing("b2", "b", `,"budget":"$150000000000000000000000000"`), "budget"},
		{"POST", "/v1/jobs", costing("late", "b", `,"deadline":"9999-12-31T23:59:59Z","work":{"time":"10h"}`), "deadline"},
		{"POST", "/v1/jobs", costing("steps", "b", `,"work":{"steps":"200B"}`), "work.steps"},
		{"POST", "/v1/jobs", costing("long", "b", `,"work":{"time":"2562047h47m"}`), "work.time"},
		{"POST", "/v1/jobs", costing("g1", "b", `,"budget":{"gpu_hours":1.7e308}`), "budget.gpu_hours"},
		{"POST", "/v1/jobs", costing("g2", "b", `,"budget":{"gpu_hours":1.7e308}`), "budget.gpu_hours"},
		{"PATCH", "/v1/jobs/small", `{"deadline":"9999-12-31T23:59:59Z"}`, "deadline"},
		{"PATCH", "/v1/jobs/small", `{"budget":"$150000000000000000000000000"}`, "budget"},
		{"PATCH", "/v1/jobs/small", `{"gpu_hours":"1e308"}`, "gpu_hours"},
		{"PATCH", "/v1/jobs/small", `{"wall_clock":"2562047h47m"}`, "wall_clock"},
		{"PUT", "/v1/budgets", `{"limit":{"scope":"all","window":"total","dollars":"150000000000000000000000000"}}`, "limit.dollars"},
		{"PUT", "/v1/budgets", `{"limit":{"scope":"all","window":"total","gpu_hours":1.7e308}}`, "limit.gpu_hours"},
		{"POST", "/v1/tokens", `{"life_ns":9223372036854775807}`, "life_ns"},
	} {
		rec, p := w.ask(c.method, c.path, auth.OwnerName, c.body)
		if rec.Code != http.StatusUnprocessableEntity || !strings.HasPrefix(p.Field, c.field) && !strings.Contains(p.Detail, c.field) || p.Fix == "" {
			t.Errorf("%s %s %s: %d, field %q, %s: %s (%s)", c.method, c.path, c.body, rec.Code, p.Field, p.Title, p.Detail, p.Fix)
		}
	}
	if n := w.control.Durable() - before; n > 4 { // the first refusal on each route
		t.Errorf("they left %d events", n)
	}
	var b api.Budgets
	w.must("GET", "/v1/budgets", nil, &b)
	if len(b.Limits) != 1 || b.Limits[0].Use.Held.String() != "12" {
		t.Errorf("the limits are %+v", b)
	}
}

// The server drops values of an agent's report beyond the bounds; the job goes on and shows the problem.
func TestReports_HugeNumbersAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	as := w.take(w.rent("job"))
	seq := int64(0)
	report := func(m api.Message) {
		seq++
		m.Seq, m.At = seq, time.Now()
		rec, p := w.ask("POST", "/v1/agent/report", as.AttemptToken, api.Report{Attempt: as.Attempt, Messages: []api.Message{m}})
		if rec.Code != http.StatusOK {
			t.Fatalf("%d %+v", rec.Code, p)
		}
	}
	report(api.Message{Started: &api.Started{Took: math.MaxInt64}})
	for step := range int64(4) {
		report(api.Message{Step: &api.Step{Step: step + 1, Total: 20_000_000_000_000, Metrics: map[string]float64{"loss": 1e300}}})
	}
	report(api.Message{Saved: &api.Saved{Manifest: "m", Step: 3, Took: math.MaxInt64, Bytes: math.MaxInt64, Uploaded: -1,
		Captured: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}})
	w.until(func(m *core.Machine) bool { j, _ := m.Job("job"); return j.HasSaved() })
	w.control.Read(func(m *core.Machine) {
		j, _ := m.Job("job")
		if j.SaveCost() != 0 || j.Total() != 0 || j.State() != core.Running {
			t.Errorf("a save takes %v of %d steps, and the job is %s", j.SaveCost(), j.Total(), j.State())
		}
	})
	if l, _ := w.control.Latest(as.Attempt); !strings.Contains(l.Trouble, "out of bounds") {
		t.Errorf("the trouble is %q", l.Trouble)
	}
	for _, forged := range []string{`{"messages":[{"seq":1e400}]}`, `{"messages":[{"seq":99999999999999999999}]}`} {
		rec, _ := w.ask("POST", "/v1/agent/report", as.AttemptToken, fmt.Sprintf(`{"attempt":%q,%s`, as.Attempt, forged[1:]))
		if rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", forged, rec.Code)
		}
	}
}

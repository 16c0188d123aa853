package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.yaml.in/yaml/v3"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/metrics"
	"scrimp/internal/store/backup"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

func TestOpenAPI_DescribesEveryRoute(t *testing.T) {
	t.Parallel()
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage
				Required   []string
			}
		}
	}
	text := OpenAPI("test")
	if err := json.Unmarshal(text, &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("%v, version %q", err, doc.OpenAPI)
	}
	seen := map[string]bool{}
	for _, r := range table() {
		op, ok := doc.Paths[r.Path][strings.ToLower(r.Method)]
		if !ok || seen[op.OperationID] {
			t.Errorf("%s %s is missing, or its name %q is taken", r.Method, r.Path, op.OperationID)
		}
		seen[op.OperationID] = true
	}
	for _, ref := range regexp.MustCompile(`"#/components/schemas/(\w+)"`).FindAllSubmatch(text, -1) {
		if s, ok := doc.Components.Schemas[string(ref[1])]; !ok || len(s.Properties) == 0 &&
			!slices.Contains([]string{"Tick"}, string(ref[1])) {
			t.Errorf("%s is not described", ref[1])
		}
	}
}

func TestAPI_WorksThroughTheClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	token := w.user("ann", identity.Grant{Team: "*", Role: identity.Submitter})
	site := httptest.NewServer(w.h)
	t.Cleanup(site.Close)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	c := client.New(site.URL+"/", token, nil)
	submit := func(name string) client.Job {
		t.Helper()
		j, err := c.Submit(ctx, client.Submission{Key: "key of " + name,
			Spec: api.Raw(`{"name":"` + name + `","command":"true"}`)})
		must.Do(t, err)
		return j
	}
	first := submit("a")
	if again := submit("a"); again.ID != first.ID {
		t.Errorf("the same key gave %s and %s", first.ID, again.ID)
	}
	for range 450 { // more than two pages
		if _, err := c.Submit(ctx, client.Submission{Spec: api.Raw(`{"name":"many","command":"true"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for j, err := range c.Jobs(ctx) {
		must.Do(t, err)
		if seen[j.ID] {
			t.Errorf("%s is listed twice", j.ID)
		}
		seen[j.ID] = true
	}
	if len(seen) != 451 {
		t.Errorf("%d jobs are listed, want 451", len(seen))
	}
	var end uint64
	for e, err := range c.Events(ctx, 1) {
		must.Do(t, err)
		if e.Job.ID == "a" || e.ID > 0 { // the start of the log is sent again
			end = e.ID
			break
		}
	}
	from, err := w.store.End(ctx)
	must.Do(t, err)
	heard := make(chan client.Event, 1)
	go func() {
		for e, err := range c.Events(ctx, from) {
			if err == nil && e.Job.ID == "a" {
				heard <- e
			}
			return
		}
	}()
	if j, err := c.End(ctx, "a", false); err != nil || j.State != "cancelled" {
		t.Errorf("end: %+v, %v", j, err)
	}
	select {
	case e := <-heard:
		if e.ID <= end || e.Job.State != "cancelled" {
			t.Errorf("heard %d of %s", e.ID, e.Job.State)
		}
	case <-ctx.Done():
		t.Error("the end was not heard of")
	}
	last := client.Job{}
	for j, err := range c.Watch(ctx, "a") {
		must.Do(t, err)
		last = j
	}
	if !last.Closed {
		t.Errorf("watched until %+v", last)
	}
	out, err := c.Logs(ctx, "a", 0, true)
	must.Do(t, err)
	if text, err := io.ReadAll(out); err != nil || len(text) != 0 {
		t.Errorf("output %q, %v", text, err)
	}
	if r, err := c.Receipt(ctx, "a"); err != nil || r.Job != "a" || r.Cost.Sign() != 0 {
		t.Errorf("receipt %+v, %v", r, err)
	}
	var p *client.Problem
	if all, err := c.Logs(ctx, "a", 0, false, client.OfAllNodes()); err != nil || all.Close() != nil {
		t.Errorf("output of all nodes: %v", err)
	}
	if _, err := c.Logs(ctx, "a", 0, false, client.OfNode(5)); !errors.As(err, &p) || p.Field != "node" || p.Fix == "" {
		t.Errorf("output of a node that is not there: %v", err)
	}
	_, err = c.Job(ctx, "none")
	if !errors.As(err, &p) || p.Status != http.StatusNotFound || p.Fix == "" || p.Code != client.JobUnknown {
		t.Errorf("a job that is not there: %v", err)
	}
	if _, err := client.New(site.URL, "wrong", nil).Job(ctx, "a"); !errors.As(err, &p) ||
		p.Status != http.StatusUnauthorized {
		t.Errorf("a wrong token: %v", err)
	}
}

func TestEvents_OmitJobsOfOtherTeams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.must("PUT", "/v1/teams/text", api.SetTeam{}, nil)
	bob := w.user("bob", identity.Grant{Team: "text", Role: identity.Viewer})
	site := httptest.NewServer(w.h)
	t.Cleanup(site.Close)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	w.must("POST", "/v1/jobs", aJob("theirs", "vision"), nil)
	w.must("POST", "/v1/jobs", aJob("ours", "text"), nil)
	for e, err := range client.New(site.URL, bob, nil).Events(ctx, 1) {
		must.Do(t, err)
		if e.Job.ID != "ours" {
			t.Errorf("bob hears of %s", e.Job.ID)
		}
		break
	}
}

func TestMetrics_FollowPrometheusNaming(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("POST", "/v1/jobs", aJob("one", ""), nil)
	w.limit(budget.Limit{Scope: budget.All, Window: budget.Month, Running: new(1)})
	rec, _ := w.ask("GET", "/metrics", auth.OwnerName, nil)
	if problems, err := promlint.New(bytes.NewReader(rec.Body.Bytes())).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	text := rec.Body.String()
	for _, want := range []string{`scrimp_jobs{state="queued"} 1`, "scrimp_leader 1",
		`scrimp_http_requests_total{code="200",route="POST /v1/jobs"} 1`, `scrimp_build_info{version="test"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	// the reference lists exactly these, with their types
	kinds := map[string]string{}
	for _, m := range metrics.List() {
		kinds[m.Name] = m.Kind
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (scrimp_\w+) (\w+)$`).FindAllStringSubmatch(text, -1) {
		if kinds[m[1]] != m[2] {
			t.Errorf("%s is a %s, and the reference says %q", m[1], m[2], kinds[m[1]])
		}
	}
	dashboard, err := os.ReadFile("../../docs/grafana/scrimp.json")
	must.Do(t, err)
	var board struct{ Panels []struct{ Title string } }
	if err := json.Unmarshal(dashboard, &board); err != nil || len(board.Panels) < 6 {
		t.Errorf("the dashboard has %d panels, %v", len(board.Panels), err)
	}
	known := string(text)
	known += "scrimp_burn_dollars_per_hour scrimp_machines" // missing while nothing runs
	for _, name := range regexp.MustCompile(`scrimp_[a-z_]+`).FindAllString(string(dashboard), -1) {
		if !strings.Contains(known, name) {
			t.Errorf("the dashboard draws %s, which is no metric", name)
		}
	}
}

// The alert rules are what Prometheus reads, and ask for metrics that exist.
func TestMetrics_AlertRulesAskForMetricsThatExist(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/grafana/alerts.yaml")
	must.Do(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	read := yaml.NewDecoder(bytes.NewReader(b))
	read.KnownFields(true)
	if err := read.Decode(&file); err != nil || len(file.Groups) != 1 {
		t.Fatalf("%v, %d groups", err, len(file.Groups))
	}
	known := map[string][]string{}
	for _, m := range metrics.List() {
		known[m.Name] = m.Labels
	}
	by, label := regexp.MustCompile(`^sum by \(([a-z, ]+)\) \((scrimp_\w+)\) > \d+$`), regexp.MustCompile(`\$labels\.(\w+)`)
	for _, r := range file.Groups[0].Rules {
		if _, err := time.ParseDuration(r.For); err != nil || r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
			t.Errorf("%+v, %v", r, err)
		}
		m := by.FindStringSubmatch(r.Expr)
		if m == nil {
			if r.Expr != "absent(scrimp_leader == 1)" {
				t.Errorf("%s is no expression that this test can read", r.Expr)
			}
			continue
		}
		of, is := known[m[2]]
		if !is {
			t.Errorf("%s asks for %s, which is no metric", r.Alert, m[2])
		}
		kept := strings.Split(m[1], ", ")
		for _, l := range kept {
			if !slices.Contains(of, l) {
				t.Errorf("%s has no label %s", m[2], l)
			}
		}
		for _, l := range label.FindAllStringSubmatch(r.Annotations["summary"], -1) {
			if !slices.Contains(kept, l[1]) {
				t.Errorf("the summary of %s has the label %s, which its expression drops", r.Alert, l[1])
			}
		}
	}
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	<-w.control.Begun()
	for _, path := range []string{"/healthz", "/readyz"} {
		if rec, _ := w.ask("GET", path, "", nil); rec.Code != 200 {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}

func TestBackup_TakenWhileServingRestoresTheSameLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.user("ann", identity.Grant{Team: "*", Role: identity.Viewer})
	w.must("POST", "/v1/jobs", aJob("one", ""), nil)
	rec, p := w.ask("GET", "/v1/backup", auth.OwnerName, nil)
	if rec.Code != 200 {
		t.Fatalf("%+v", p)
	}
	sum, err := backup.SumOf(t.Context(), w.store)
	must.Do(t, err)
	st, err := sqlite.Open(t.TempDir())
	must.Do(t, err)
	defer st.Close()
	got, err := backup.Restore(t.Context(), st, rec.Body)
	if err != nil || got != sum {
		t.Errorf("restored %+v, were %+v, %v", got, sum, err)
	}
	book, err := auth.ReadPeople(t.Context(), st)
	must.Do(t, err)
	var users []identity.User
	if book.Read(func(b *identity.Book) { users = b.Users() }); len(users) != 1 {
		t.Errorf("users after it: %+v", users)
	}
}

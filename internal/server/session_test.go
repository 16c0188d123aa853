package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// working returns a world in which ann's job runs on a machine.
func working(t *testing.T) (w *world, attempt string, tokens map[string]string) {
	t.Helper()
	w = newWorldOf(t, &rents{}, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	tokens = map[string]string{"eve": w.user("eve")}
	for name, role := range map[string]identity.Role{"ann": identity.Submitter, "bob": identity.Submitter, "op": identity.Operator} {
		tokens[name] = w.user(name, identity.Grant{Team: "vision", Role: role})
	}
	if rec, p := w.ask("POST", "/v1/jobs", tokens["ann"], aJob("a", "vision")); rec.Code >= 300 {
		t.Fatalf("%+v", p)
	}
	w.until(func(m *core.Machine) bool {
		j, _ := m.Job("a")
		if a := j.Attempt(); a != nil && a.Live() && a.Task() == core.Assigned {
			attempt = a.ID()
		}
		return attempt != ""
	})
	w.take(attempt)
	rec, p := w.ask("POST", "/v1/agent/report", w.rankToken(attempt, 0), api.Report{Attempt: attempt, Now: time.Now(),
		Messages: []api.Message{{Seq: 1, At: time.Now(), Started: &api.Started{}}}})
	if rec.Code != http.StatusOK {
		t.Fatalf("%+v", p)
	}
	w.until(func(m *core.Machine) bool { j, _ := m.Job("a"); return j.Attempt().Task() == core.TaskRunning })
	return w, attempt, tokens
}

// A submitter may run commands in their own jobs only, an operator in all of the team; each start is in the audit
// log.
func TestExec_SubmitterRunsCommandsInTheirOwnJobs(t *testing.T) {
	t.Parallel()
	w, _, tokens := working(t)
	for who, want := range map[string]int{"ann": 200, "op": 200, "bob": 403, "eve": 404} {
		rec, p := w.ask("POST", "/v1/jobs/a/exec", tokens[who], api.Exec{Command: []string{"sh"}, Input: true})
		if rec.Code != want || want >= 400 && p.Fix == "" {
			t.Errorf("%s: %d %+v, want %d", who, rec.Code, p, want)
		}
	}
	for node, want := range map[int]int{1: 404, -1: 422} {
		if rec, p := w.ask("POST", "/v1/jobs/a/exec", tokens["ann"], api.Exec{Command: []string{"sh"}, Node: node}); rec.Code != want {
			t.Errorf("node %d: %d %+v", node, rec.Code, p)
		}
	}
	var page api.Audit
	w.must("GET", "/v1/audit", nil, &page)
	var got []string
	for _, a := range page.Acts {
		if a.Route == "POST /v1/jobs/{id}/exec" && a.Outcome == "done" {
			got = append(got, a.Who)
		}
	}
	if slices.Sort(got); strings.Join(got, " ") != "ann op" {
		t.Errorf("on record are %v", got)
	}
	for range 4 {
		w.ask("POST", "/v1/jobs/a/exec", tokens["ann"], api.Exec{Command: []string{"sh"}, Input: true})
	}
	if rec, p := w.ask("POST", "/v1/jobs/a/exec", tokens["ann"], api.Exec{Command: []string{"sh"}, Input: true}); rec.Code != 429 || p.Fix == "" {
		t.Errorf("one session more than a machine has: %d %+v", rec.Code, p)
	}
}

// Input reaches the machine and output its reader, in order and once. Nobody else can use the session, and it is
// gone after its end.
func TestSession_BelongsToItsUser(t *testing.T) {
	t.Parallel()
	w, attempt, tokens := working(t)
	agent := w.rankToken(attempt, 0)
	var begun api.ExecResult
	rec, p := w.ask("POST", "/v1/jobs/a/exec", tokens["ann"], api.Exec{Command: []string{"sh"}, Terminal: &api.Terminal{Rows: 30, Cols: 90}})
	if err := json.Unmarshal(rec.Body.Bytes(), &begun); err != nil || begun.Session == "" {
		t.Fatalf("%v: %+v", err, p)
	}
	mine, its := "/v1/jobs/a/exec/"+begun.Session, "/v1/agent/exec/"+begun.Session
	var o api.Orders
	rec, _ = w.ask("POST", "/v1/agent/report", agent, api.Report{Attempt: attempt, Now: time.Now()})
	if err := json.Unmarshal(rec.Body.Bytes(), &o); err != nil || len(o.Exec) != 1 || o.Exec[0].ID != begun.Session || o.Exec[0].Terminal.Cols != 90 {
		t.Fatalf("the machine is told %+v, %v", o.Exec, err)
	}
	code := func(method, path, token string, body any, want int) string {
		t.Helper()
		rec, p := w.ask(method, path, token, body)
		if rec.Code != want {
			t.Errorf("%s %s: %d %+v, want %d", method, path, rec.Code, p, want)
		}
		return rec.Body.String()
	}
	code("POST", mine, tokens["op"], api.ExecInput{Input: []byte("no")}, 409)
	code("GET", mine, tokens["op"], nil, 409)
	code("POST", mine, tokens["ann"], api.ExecInput{Input: []byte("ls")}, 204)
	code("POST", mine, tokens["ann"], api.ExecInput{Input: []byte("\n"), Terminal: &api.Terminal{Rows: 20, Cols: 60}}, 204)
	var in api.SessionInput
	for offset, want := range map[string]string{"0": "ls\n"} {
		if err := json.Unmarshal([]byte(code("GET", its+"/input?offset="+offset, agent, nil, 200)), &in); err != nil || string(in.Input) != want || in.Terminal.Cols != 60 {
			t.Errorf("from %s: %+v, %v", offset, in, err)
		}
	}
	code("GET", its+"/input", agent, nil, 400)
	code("GET", its+"/input?offset=0", w.rankToken(attempt, 1), nil, 404)
	code("POST", its+"/output?offset=0", agent, "hel", 204)
	code("POST", its+"/output?offset=0", agent, "hello", 204) // the response was lost
	code("POST", its, agent, api.ExecResult{Exit: 3}, 204)
	var printed strings.Builder
	for line := range strings.Lines(code("GET", mine, tokens["ann"], nil, 200)) {
		var out api.ExecOutput
		if err := json.Unmarshal([]byte(line), &out); err != nil {
			t.Fatal(err)
		}
		if printed.Write(out.Output); out.Over {
			printed.WriteString("|" + strings.Repeat("x", out.Exit))
		}
	}
	if printed.String() != "hello|xxx" {
		t.Errorf("its reader has %q", printed.String())
	}
	code("GET", its+"/input?offset=0", agent, nil, 404)
	code("POST", its+"/output?offset=5", agent, "more", 404)
	code("POST", mine, tokens["ann"], api.ExecInput{Input: []byte("x")}, 409)
	code("GET", mine, tokens["ann"], nil, 409)
	code("POST", "/v1/jobs/a/exec/none", auth.OwnerName, api.ExecInput{}, 409)
}

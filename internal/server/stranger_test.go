package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/confined"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/workdir"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// once is a response recorder that breaks off after the first write.
type once struct {
	*httptest.ResponseRecorder
	cancel context.CancelFunc
}

func (o once) Flush() { o.cancel() }

// mark is part of every name and text of a team, so that the test finds leaks to others.
const mark = "zzmark"

// A caller of another team finds nothing about a team's jobs, people, projects, tags, limits and machines in any
// response, on any route and whatever the state of the caller's own jobs.
func TestRoutes_RevealNothingOfOtherTeams(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, func(o *Options) { o.Rate = 1e6 }) // asks more in a second than a user may
	w.must("PUT", "/v1/teams/"+mark, api.SetTeam{Projects: []string{mark + "-p"}}, nil)
	w.must("PUT", "/v1/teams/text", api.SetTeam{}, nil)
	ann := w.user(mark+"-ann", identity.Grant{Team: mark, Role: identity.Operator})
	bob := w.user("bob", identity.Grant{Team: "text", Role: identity.Admin})
	theirs := func(name string) {
		t.Helper()
		if rec, p := w.ask("POST", "/v1/jobs", ann,
			strings.ReplaceAll(`{"key":"MARK-`+name+`","spec":{"name":"MARK-`+name+
				`","command":"MARK","kind":"production","environment":"MARK","model_version":"MARK","tags":{"MARK":"MARK","k":"MARK"}}}`, "MARK", mark)); rec.Code != 200 {
			t.Fatalf("%+v", p)
		}
	}
	theirs("runs")
	w.until(func(m *core.Machine) bool {
		j, _ := m.Job(mark + "-runs")
		return j.Live() != nil && j.Live().Task() == core.Assigned
	})
	theirs("waits")
	var mine api.Job
	rec, p := w.ask("POST", "/v1/jobs", bob,
		`{"key":"k","spec":{"name":"mine","command":"true","budget":{"dollars":"1"}}}`)
	if json.Unmarshal(rec.Body.Bytes(), &mine); rec.Code != 200 {
		t.Fatalf("%+v", p)
	}
	clean := func(what string, rec *httptest.ResponseRecorder) {
		t.Helper()
		text := fmt.Sprint(rec.Header()) + rec.Body.String()
		if at := strings.Index(text, mark); at >= 0 {
			t.Errorf("%s tells of another team: …%s", what, text[max(0, at-100):min(len(text), at+60)])
		}
	}
	look := func(when, id string) {
		t.Helper()
		asked := 0
		for _, r := range table() {
			if r.Scope == bootstraps || r.Scope == machines || r.Scope == attempts || r.Method != "GET" {
				continue
			}
			for _, query := range []string{"", "?after=0", "?by=user", "?by=project", "?by=job", "?by=kind", "?by=tag:k",
				"?expected=1", "?live=1", "?state=running", "?limit=1000", "?limit=1&before="} {
				ctx, cancel := context.WithCancel(t.Context())
				req := httptest.NewRequestWithContext(ctx, r.Method, strings.ReplaceAll(r.Path, "{id}", id)+query, nil)
				req.Header.Set("Authorization", "Bearer "+bob)
				rec := once{httptest.NewRecorder(), cancel}
				w.h.ServeHTTP(rec, req)
				cancel()
				clean(when+": GET "+req.URL.String(), rec.ResponseRecorder)
				asked++
			}
		}
		if asked < 200 {
			t.Errorf("only %d questions", asked)
		}
	}
	look("without limits", "mine")
	for _, set := range []string{`{"limit":{"scope":"all","window":"total","dollars":"1000"}}`,
		`{"limit":{"scope":"team:MARK","window":"total","running":1}}`,
		`{"limit":{"scope":"user:MARK-ann","window":"day","jobs":9}}`,
		`{"limit":{"scope":"project:MARK-p","window":"day","jobs":9,"notify":"https://example.com/MARK"}}`} {
		w.must("PUT", "/v1/budgets", strings.ReplaceAll(set, "MARK", mark), nil)
	}
	refused := func(why, body string) {
		t.Helper()
		for _, path := range []string{"/v1/jobs", "/v1/jobs/batch"} {
			sent := body
			if path != "/v1/jobs" {
				sent = "[" + body + "]"
			}
			rec, p := w.ask("POST", path, bob, sent)
			if rec.Code < 400 {
				t.Errorf("%s: %s lets the job in", why, path)
			}
			clean(why+": POST "+path, rec)
			if p.Use != nil || p.Limit != nil || strings.Contains(p.Detail, "1000") {
				t.Errorf("%s: what others have used is told: %+v", why, p)
			}
		}
	}
	refused("another's job has no bound", `{"spec":{"name":"mine","command":"true","budget":{"dollars":"1"}}}`)
	w.must("PUT", "/v1/budgets", `{"remove":"all/total"}`, nil)
	w.must("PUT", "/v1/budgets", `{"limit":{"scope":"all","window":"total","jobs":1}}`, nil)
	refused("others have too many", `{"spec":{"name":"mine","command":"true"}}`)
	w.must("PUT", "/v1/budgets", `{"limit":{"scope":"all","window":"total","running":0}}`, nil)
	theirs("urgent")
	if rec, p := w.ask("POST", "/v1/jobs", bob,
		`{"spec":{"name":"late","command":"true","priority":"low"}}`); rec.Code != 200 {
		t.Fatalf("%+v", p)
	}
	w.must("PUT", "/v1/budgets", `{"limit":{"scope":"all","window":"total","gpus":0}}`, nil)
	look("with limits of all", "late")
	// a correct guess gets the same answer as a wrong one
	for _, body := range []string{`{"rerun":"ID","spec":{"name":"a","command":"true"}}`,
		`{"key":"ID","spec":{"name":"a","command":"true"}}`} {
		right, _ := w.ask("POST", "/v1/jobs", bob, strings.ReplaceAll(body, "ID", mark+"-runs"))
		wrong, _ := w.ask("POST", "/v1/jobs", bob, strings.ReplaceAll(body, "ID", "none"))
		if right.Code != wrong.Code {
			t.Errorf("%s: %d, and of one that is not there %d", body, right.Code, wrong.Code)
		}
	}
	for _, path := range []string{"/v1/jobs?after=", "/v1/jobs?before=", "/v1/measured?name=", "/v1/jobs/"} {
		right, _ := w.ask("GET", path+mark+"-runs", bob, nil)
		wrong, _ := w.ask("GET", path+"none", bob, nil)
		if right.Code != wrong.Code || strings.ReplaceAll(right.Body.String(), mark+"-runs", "none") != wrong.Body.String() {
			t.Errorf("%s: %d %s, and of one that is not there %d %s", path, right.Code, right.Body, wrong.Code, wrong.Body)
		}
	}
}

// The server ignores where an agent says it keeps outputs, since that is its program's word.
func TestOutputs_IgnoreTheAgentsAddress(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, func(o *Options) { o.Rate = 1e6 }) // asks more in a second than a user may
	asked := false
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer inside.Close()
	b, err := blob.Open(t.Context(), artifacts.Address(w.opts.Dir))
	must.Do(t, err)
	defer func() { _ = b.Close() }()
	from := t.TempDir()
	must.Do(t, os.MkdirAll(from+"/out", 0o700))
	must.Do(t, os.WriteFile(from+"/out/f", []byte("of another team"), 0o600))
	if _, _, err := checkpoint.Open(b, artifacts.OwnKeys("other")).Keep(t.Context(), confined.Folder{Path: from}, []string{"out"}, "other"); err != nil {
		t.Fatal(err)
	}
	for n, says := range []string{artifacts.Address(w.opts.Dir) + "#other", "s3://b?endpoint=" + inside.URL + "&region=x#other",
		"file:///etc#passwd"} {
		job := fmt.Sprint("job", n)
		attempt := w.rent(job)
		as := w.take(attempt)
		rec, p := w.ask("POST", "/v1/agent/report", as.AttemptToken,
			api.Report{Attempt: attempt,
				Messages: []api.Message{{Seq: 1, At: time.Now(), Ended: &api.Ended{Reason: "completed", Outputs: says}}}})
		if rec.Code != 200 {
			t.Fatalf("%+v", p)
		}
		w.until(func(m *core.Machine) bool { j, _ := m.Job(job); return j.Outputs() == says })
		if rec, _ := w.ask("GET", "/v1/jobs/"+job+"/outputs", auth.OwnerName, nil); rec.Code == 200 || asked {
			t.Errorf("%s: outputs of another job, or of a host inside, are given out: %d", says, rec.Code)
		}
	}
}

// A client that makes up agent tokens has one rate limit for all of them.
func TestAgentTokens_MadeUpOnesShareOneLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1 })
	w.gate.Pace.Freeze()
	slowed := 0
	for n := range 50 {
		rec, _ := w.ask("POST", "/v1/agent/register", fmt.Sprintf("bootstrap.made.up.%d", n), "{}")
		if rec.Code == http.StatusTooManyRequests {
			slowed++
		}
	}
	if slowed < 40 {
		t.Errorf("%d of 50 were slowed", slowed)
	}
}

// Routes without a token share the rate limit of strangers, even paths that do not exist. Health checks are answered
// all the same.
func TestOpenRoutes_ShareTheLimitOfStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 2 })
	w.gate.Pace.Freeze()
	w.gate.StrangersPace.Freeze()
	for _, path := range []string{"/v1/openapi.json", "/nothing", "/v1/program/x"} {
		answered := 0
		for n := range 40 {
			r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
			r.RemoteAddr = fmt.Sprintf("[2001:db8:%x:%x::1]:1", len(path), n%2) // two networks
			rec := httptest.NewRecorder()
			w.h.ServeHTTP(rec, r)
			if rec.Code != http.StatusTooManyRequests {
				answered++
			}
		}
		if answered > 8 {
			t.Errorf("%s: %d of 40 are answered, and two networks have 4 each", path, answered)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if rec, _ := w.ask("GET", path, "", nil); rec.Code == http.StatusTooManyRequests {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
}

// A stream ends once its reader may no longer see its contents.
func TestStream_EndsWithTokenOrRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	front := httptest.NewServer(w.h)
	defer front.Close()
	for what, end := range map[string]func(user, token string){
		"the token is revoked":     func(_, token string) { w.must("DELETE", "/v1/tokens/"+token, nil, nil) },
		"the user is switched off": func(user, _ string) { w.must("PUT", "/v1/users/"+user, `{"off":true}`, nil) },
		"the role is taken":        func(user, _ string) { w.must("PUT", "/v1/users/"+user, `{"grants":[]}`, nil) },
	} {
		name := strings.ReplaceAll(what, " ", "-")
		w.must("PUT", "/v1/users/"+name, api.SetUser{Grants: []client.Grant{{Team: "vision", Role: client.Viewer}}}, nil)
		var made api.MadeToken
		w.must("POST", "/v1/tokens", api.NewToken{User: name}, &made)
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
		req, _ := http.NewRequestWithContext(ctx, "GET", front.URL+"/v1/events", nil)
		req.Header.Set("Authorization", "Bearer "+made.Text)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %v %v", what, resp, err)
		}
		lines := bufio.NewScanner(resp.Body)
		lines.Scan() // still open
		end(name, made.ID)
		for lines.Scan() {
		}
		if lines.Err() != nil {
			t.Errorf("%s: the stream goes on: %v", what, lines.Err())
		}
		_ = resp.Body.Close()
		cancel()
	}
}

// Uploads leave the log its reserved room.
func TestUploads_LeaveTheLogItsReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ann := w.user("ann", identity.Grant{Team: "*", Role: identity.Submitter})
	folder := folderOf(t, map[string]string{"a": "some bytes"})
	if rec, p := w.ask("POST", "/v1/work", ann, folder); rec.Code != 200 {
		t.Fatalf("%+v", p)
	}
	w.free.Store(disk.LogReserve - 1)
	if rec, p := w.ask("POST", "/v1/work", ann, folder); rec.Code != http.StatusInsufficientStorage || p.Fix == "" {
		t.Errorf("%d %+v", rec.Code, p)
	}
	if rec, _ := w.ask("POST", "/v1/jobs", ann, aJob("some", "")); rec.Code != 200 {
		t.Errorf("a job without a folder: %d %s", rec.Code, rec.Body)
	}
	w.free.Store(disk.EndReserve - 1)
	events := w.control.Durable()
	for path, body := range map[string]string{"/v1/jobs": aJob("more", ""),
		"/v1/jobs/batch": "[" + aJob("more", "") + "]"} {
		if rec, p := w.ask("POST", path, ann, body); rec.Code != http.StatusInsufficientStorage || p.Fix == "" ||
			rec.Header().Get("Retry-After") == "" {
			t.Errorf("%s with %d bytes free: %d %+v", path, disk.EndReserve-1, rec.Code, p)
		}
	}
	if n := w.control.Durable(); n != events {
		t.Errorf("what is refused for want of room took %d events", n-events)
	}
	if rec, p := w.ask("POST", "/v1/jobs/some/end", ann, api.End{}); rec.Code != 200 {
		t.Errorf("on a disk that is nearly full no job can be ended: %d %+v", rec.Code, p)
	}
	if list, _ := filepath.Glob(filepath.Join(w.opts.Dir, workdir.Folder, "sent", "person-*", "*")); len(list) != 1 {
		t.Errorf("%d folders are kept, want the first", len(list))
	}
}

// A disk with bytes but hardly any inodes left counts as full: uploads wait, running jobs go on, and no response
// reveals the path of the data folder.
func TestDisk_LastInodesAreReservedForTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ann := w.user("ann", identity.Grant{Team: "*", Role: identity.Submitter})
	if rec, _ := w.ask("POST", "/v1/jobs", ann, aJob("some", "")); rec.Code != 200 {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	refused := func(path, body string) {
		t.Helper()
		rec, p := w.ask("POST", path, ann, body)
		if rec.Code != http.StatusInsufficientStorage || p.Fix == "" || strings.Contains(rec.Body.String(), w.opts.Dir) {
			t.Errorf("%s with room for %d files: %d %+v", path, w.entries.Load(), rec.Code, p)
		}
	}
	w.entries.Store(disk.LogEntries - 1)
	refused("/v1/work", folderOf(t, map[string]string{"a": "some bytes"}))
	if rec, _ := w.ask("POST", "/v1/jobs", ann, aJob("another", "")); rec.Code != 200 {
		t.Errorf("a job without a folder: %d %s", rec.Code, rec.Body)
	}
	w.entries.Store(disk.EndEntries - 1)
	refused("/v1/jobs", aJob("more", ""))
	w.entries.Store(0)
	w.free.Store(disk.EndReserve - 1)
	refused("/v1/jobs", aJob("more", ""))
	if rec, p := w.ask("POST", "/v1/jobs/some/end", ann, api.End{}); rec.Code != 200 {
		t.Errorf("no job can be ended: %d %+v", rec.Code, p)
	}
	w.free.Store(0)
	must.Do(t, errors.Join(os.MkdirAll(w.folders.Dir, 0o700), os.WriteFile(filepath.Join(w.folders.Dir, "new"), nil, 0o600)))
	rec, p := w.ask("POST", "/v1/work", ann, folderOf(t, map[string]string{"a": "some bytes"}))
	if rec.Code == 200 || strings.Contains(rec.Body.String(), w.opts.Dir) || !strings.Contains(p.Detail, "the data folder/folders/new") {
		t.Errorf("a folder that cannot be kept: %d %+v", rec.Code, p)
	}
}

// A user who has left a team learns nothing about its jobs from the keys of their own submissions.
func TestKey_HidesJobsOfATeamThatTheUserLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.must("PUT", "/v1/teams/text", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "vision", Role: identity.Submitter})
	body := `{"key":"k",` + aJob("one", "")[1:]
	for range 2 {
		if rec, p := w.ask("POST", "/v1/jobs", ann, body); rec.Code != 200 {
			t.Fatalf("%+v", p)
		}
	}
	w.must("PUT", "/v1/users/ann", api.SetUser{Grants: []client.Grant{{Team: "text", Role: client.Submitter}}}, nil)
	if rec, p := w.ask("POST", "/v1/jobs", ann, body); rec.Code != http.StatusConflict ||
		strings.Contains(rec.Body.String(), "vision") || p.Fix == "" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	rec, _ := w.ask("POST", "/v1/jobs/batch", ann, "["+body+"]")
	if strings.Contains(rec.Body.String(), "vision") {
		t.Errorf("a batch: %d %s", rec.Code, rec.Body)
	}
}

// The server quickly refuses deeply nested and very long values.
func TestRequests_DeepAndWideOnesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	deep := func(n int, open, inner, end string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for name, body := range map[string]string{
		"deep": deep(1_000_000, "[", "1", "]"), "deep within the job file": `{"spec":` + deep(1_000_000, `{"a":`, "1", "}") +
			`}`, "deep and cut": strings.Repeat(`{"spec":`, 900_000),
		"less deep":            `{"spec":{"name":"x","command":"true","tags":` + deep(9_000, `{"a":`, "1", "}") + `}}`,
		"wide":                 "[" + strings.Repeat(`{},`, 1_000_000) + "{}]",
		"a number without end": `{"spec":{"name":"x","command":"true","nodes":1` + strings.Repeat("0", 1_000_000) + `}}`,
		"a power without end":  `{"spec":{"name":"x","command":"true","max_price":1e999999999}}`,
	} {
		for _, path := range []string{"/v1/jobs", "/v1/jobs/batch"} {
			if rec, p := w.ask("POST", path, auth.OwnerName, body); rec.Code != 400 && rec.Code != 413 && rec.Code != 422 {
				t.Errorf("%s to %s: %d %+v", name, path, rec.Code, p)
			}
		}
	}
}

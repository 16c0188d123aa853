package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/store"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// A user who may not run commands in another user's job cannot do so by resuming it with another environment or
// other secrets: the program would run with its owner's sealed values.
func TestResume_EnvironmentRequiresTheRightToRunCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/red", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "red", Role: identity.Submitter})
	bob := w.user("bob", identity.Grant{Team: "red", Role: identity.Submitter})
	op := w.user("op", identity.Grant{Team: "red", Role: identity.Operator})
	job := strings.Replace(aJob("j", "red"), `"command"`, `"secrets":["KEY"],"command"`, 1)
	job = strings.Replace(job, `{"spec"`, `{"secrets":{"KEY":"hers"},"spec"`, 1)
	for _, step := range []struct {
		who, does, body string
		code            int
	}{
		{ann, "", job, 200},
		{bob, "/pause", `{}`, 403}, // it is a teammate's job
		{ann, "/pause", `{}`, 200},
		{bob, "/resume", `{"env":["BASH_ENV=/tmp/bobs"]}`, 403},
		{bob, "/resume", `{"secrets":{"KEY":"his"}}`, 403},
		{bob, "/resume", `{"priority":"low"}`, 403},
		{ann, "/resume", `{"priority":"low"}`, 200},
		{op, "/pause", `{}`, 200},
		{op, "/resume", `{"env":["LR=1"]}`, 200}, // an operator may run commands there
		{ann, "/pause", `{}`, 200},
		{ann, "/resume", `{"env":["LR=2"]}`, 200},
	} {
		path := "/v1/jobs/j" + step.does
		if step.does == "" {
			path = "/v1/jobs"
		}
		if rec, p := w.ask("POST", path, step.who, step.body); rec.Code != step.code {
			t.Errorf("%s %s: %d %+v", path, step.body, rec.Code, p)
		}
	}
	if got := w.secrets("j"); got["KEY"] != "hers" {
		t.Errorf("the secret is %q by now", got["KEY"])
	}
}

// A removal by an admin is recorded first, even after many other acts.
func TestGC_IsRecordedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	admin := w.user("root", identity.Grant{Team: identity.Everywhere, Role: identity.Admin})
	for range 70 { // acts without an event of their own are recorded sixty times
		w.ask("POST", "/v1/work", admin, folderOf(t, map[string]string{"a": "a"}))
	}
	if rec, p := w.ask("POST", "/v1/gc", admin, client.GC{Only: []string{client.GCLogs}}); rec.Code != http.StatusOK {
		t.Fatalf("%d %+v", rec.Code, p)
	}
	found := false
	w.eachRecord(t)(func(r store.Record, err error) bool {
		if strings.Contains(string(r.Event), "POST /v1/gc") && strings.Contains(string(r.Event), "only logs") {
			found = true
		}
		return err == nil
	})
	if !found {
		t.Error("it is not in the log")
	}
}

// Repeated commands and changes of one job are too few to fill the log, and refusals are not in it.
func TestLog_RepeatedChangesDoNotFillIt(t *testing.T) {
	t.Parallel()
	w, _, tokens := working(t)
	begins := w.ends()
	for range 400 {
		w.ask("POST", "/v1/jobs/a/exec", tokens["ann"], api.Exec{Command: []string{"true"}, Input: true})
	}
	if n := w.ends() - begins; n > 200 {
		t.Errorf("400 commands at once left %d events", n)
	}
	begins = w.ends()
	for i := range 800 {
		w.ask("PATCH", "/v1/jobs/a", tokens["ann"], []string{`{"priority":"low"}`, `{"priority":"high"}`}[i%2])
	}
	if n := w.ends() - begins; n > 2*500 {
		t.Errorf("800 changes at once left %d events", n)
	}
	if rec, p := w.ask("PATCH", "/v1/jobs/a", tokens["op"], `{"priority":"low"}`); rec.Code != http.StatusOK {
		t.Errorf("another user's change: %d %+v", rec.Code, p)
	}
}

// ends returns the number of events in the log.
func (w *world) ends() uint64 {
	w.t.Helper()
	n, err := w.store.End(w.t.Context())
	must.Do(w.t, err)
	return n
}

// One user can have four uploads in progress: each is on the disk before its contents are known.
func TestUploads_OfOneUserAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ann := w.user("ann", identity.Grant{Team: identity.Everywhere, Role: identity.Submitter})
	bob := w.user("bob", identity.Grant{Team: identity.Everywhere, Role: identity.Submitter})
	folder := folderOf(t, map[string]string{"a": "a"})
	let, all := make(chan struct{}), sync.WaitGroup{}
	var begun sync.WaitGroup
	begun.Add(4)
	for range 4 {
		all.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/v1/work", &lateBody{begun: &begun, let: let, from: strings.NewReader(folder)})
			r.Header.Set("Authorization", "Bearer "+ann)
			rec := httptest.NewRecorder()
			if w.h.ServeHTTP(rec, r); rec.Code != http.StatusOK {
				t.Errorf("one of four: %d %s", rec.Code, rec.Body)
			}
		})
	}
	begun.Wait()
	if rec, p := w.ask("POST", "/v1/work", ann, folder); rec.Code != http.StatusTooManyRequests || p.Fix == "" {
		t.Errorf("a fifth: %d %+v", rec.Code, p)
	}
	if rec, p := w.ask("POST", "/v1/work", bob, folder); rec.Code != http.StatusOK {
		t.Errorf("another user's: %d %+v", rec.Code, p)
	}
	close(let)
	all.Wait()
	if rec, p := w.ask("POST", "/v1/work", ann, folder); rec.Code != http.StatusOK {
		t.Errorf("one after them: %d %+v", rec.Code, p)
	}
}

// lateBody is a body that comes once it is released.
type lateBody struct {
	begun *sync.WaitGroup
	once  sync.Once
	let   <-chan struct{}
	from  io.Reader
}

func (l *lateBody) Read(p []byte) (int, error) {
	l.once.Do(l.begun.Done)
	<-l.let
	return l.from.Read(p)
}

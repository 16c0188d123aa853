package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"scrimp/internal/lib/identity"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/wire/api"
)

// keeping returns a job with its checkpoints in a store.
func keeping(name, store string) string {
	if store != "" {
		store = `,"store":"` + store + `"`
	}
	return strings.Replace(aJob(name, ""), `"command"`, `"checkpoint":{"dir":"ck"`+store+`},"command"`, 1)
}

// A submitter cannot make the server open a folder or an endpoint with its rights and keys: neither at submission,
// nor when anybody lists the job's checkpoints, nor when another job starts from them.
func TestStores_UnlistedOnesAreNeverOpened(t *testing.T) {
	asked := atomic.Int32{}
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "the-server")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	top := t.TempDir()
	w := newWorld(t, func(o *Options) { o.Stores = []string{"file://" + top + "/allowed"} })
	w.must("PUT", "/v1/teams/red", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "red", Role: identity.Submitter})
	for _, store := range []string{"file://" + top + "/made", "file://" + top + "/allowed/../made",
		"file://" + w.opts.Dir + "/blobs", "s3://b?region=x&endpoint=" + inside.URL} {
		job := keeping("j", store)
		for path, field := range map[string]string{"/v1/jobs": "checkpoint.store", "/v1/jobs/batch": "[0].checkpoint.store"} {
			body := job
			if strings.HasSuffix(path, "batch") {
				body = "[" + job + "]"
			}
			rec, p := w.ask("POST", path, ann, body)
			if rec.Code != http.StatusUnprocessableEntity || p.Field != field || !strings.Contains(p.Fix, "--stores") {
				t.Errorf("POST %s with %s: %d %+v", path, store, rec.Code, p)
			}
		}
		for _, path := range []string{"checkpoints", "checkpoints/latest"} {
			w.ask("GET", "/v1/jobs/j/"+path, ann, nil)
		}
	}
	if rec, p := w.ask("POST", "/v1/jobs", ann, keeping("ok", "file://"+top+"/allowed/red")); rec.Code != http.StatusOK {
		t.Errorf("an allowed store is refused: %d %+v", rec.Code, p)
	}
	if rec, p := w.ask("GET", "/v1/jobs/ok/checkpoints", ann, nil); rec.Code != http.StatusOK {
		t.Errorf("checkpoints in an allowed store: %d %+v", rec.Code, p)
	}
	// A store that is no longer allowed is not opened for earlier jobs.
	w.kept.Stores = artifacts.Stores{}
	from := strings.Replace(keeping("from", ""), `{"spec"`, `{"from":"ok","spec"`, 1)
	for _, ask := range []struct{ method, path, body string }{{"GET", "/v1/jobs/ok/checkpoints", ""},
		{"GET", "/v1/jobs/ok/checkpoints/latest", ""}, {"POST", "/v1/jobs", from}} {
		if rec, p := w.ask(ask.method, ask.path, ann, ask.body); rec.Code != http.StatusForbidden {
			t.Errorf("%s %s: %d %+v", ask.method, ask.path, rec.Code, p)
		}
	}
	if _, err := os.Stat(filepath.Join(top, "made")); err == nil || asked.Load() > 0 {
		t.Errorf("the server made the folder, or asked the endpoint %d times", asked.Load())
	}
}

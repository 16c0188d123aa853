//go:build !local

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// bucketWorld returns a lendingWorld with a bucket on a real S3 server, behind a gate that evaluates session
// policies. objects is the folder of its objects; while away is set, the bucket fails.
func bucketWorld(t *testing.T) (w *world, gate *awstest.Gate, store, objects string, away *atomic.Bool) {
	t.Helper()
	address, objects := blobtest.S3(t)
	_, query, _ := strings.Cut(address, "endpoint=")
	endpoint, _, _ := strings.Cut(query, "&")
	gate, away = &awstest.Gate{To: endpoint, Key: os.Getenv("AWS_ACCESS_KEY_ID"), Secret: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		Region: "us-east-1"}, &atomic.Bool{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusNotImplemented) // a status that the SDK does not retry
			return
		}
		gate.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	store = "s3://scrimp-test?endpoint=" + front.URL + "&prefix=team"
	w, _ = lendingWorldOf(t, func(c *awstest.Server) string { gate.STS = c; return store })
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); w.workBlobs.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-over })
	return w, gate, store, filepath.Join(objects, "team", "jobs"), away
}

// blobOf asks as an attempt's agent does, until it need not wait.
func (w *world) blobOf(attempt, query string) (code int, at api.WorkBlob) {
	w.t.Helper()
	for at.Wait = true; at.Wait; {
		at = api.WorkBlob{}
		rec, _ := w.ask("GET", "/v1/agent/work/blob"+query, w.gate.Tickets.For(auth.AttemptTicket, attempt), nil)
		if code = rec.Code; code == http.StatusOK {
			must.Do(w.t, json.Unmarshal(rec.Body.Bytes(), &at))
		}
	}
	return code, at
}

// Agents get their work folder from their job's prefix in the bucket instead of from the server: two attempts of a
// job, on two machines with the real agent and no keys of their own. The second resumes from the checkpoint there.
func TestWorkBlob_MachineFetchesFromTheBucket(t *testing.T) {
	lane.Component(t, "objects")
	w, gate, store, _, _ := bucketWorld(t)
	url := w.listens(t, "tcp")
	folder := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(folder, "train.sh"), []byte(trains), 0o755),
		os.Mkdir(filepath.Join(folder, "data"), 0o755),
		os.WriteFile(filepath.Join(folder, "data", "input"), []byte(strings.Repeat("x", 7<<20)), 0o644))
	must.Do(t, err)
	spec := `{"name":"a","command":"./train.sh","setup":"touch set-up","outputs":["out"],"checkpoint":{"dir":"ckpt","store":"` +
		store + `"},"grace":"3s"}`
	w.must("POST", "/v1/jobs", api.Submission{Spec: []byte(spec), Folder: folder}, nil)
	first := w.newest("a", "")
	p, _ := w.elsewhere(t, url, first)
	w.until(func(m *core.Machine) bool { j, _ := m.Job("a"); return j.HasSaved() })
	if err := p.Signal(syscall.SIGTERM); err != nil { // as at the provider's notice
		t.Fatal(err)
	}
	_, end := w.elsewhere(t, url, w.newest("a", first))
	if err := end(); err != nil {
		t.Fatal(err)
	}
	w.until(func(m *core.Machine) bool { j, _ := m.Job("a"); return j.State() == core.Succeeded })
	puts, gets, keys := 0, map[string]bool{}, "arn:aws:s3:::scrimp-test/team/jobs/a/work/"
	for _, x := range gate.Seen() {
		switch {
		case !x.Allowed:
			t.Errorf("%+v", x)
		case strings.HasPrefix(x.Resource, keys) && x.Action == "s3:PutObject":
			puts++
		case strings.HasPrefix(x.Resource, keys) && x.Action == "s3:GetObject":
			gets[x.Key] = true
		}
	}
	if puts != 4 || len(gets) != 3 { // two parts between create and complete; reads by the server and two machines
		t.Errorf("%d puts, and gets by %d sessions", puts, len(gets))
	}
	if text := w.log.String(); strings.Contains(text, "not taken from its job's bucket") || !strings.Contains(text, "is in its job's bucket") {
		t.Errorf("the server's log: %s", text)
	}
}

// An attempt gets the place of its own job's folder only. An attempt of a job without a declared store gets none,
// and neither does any while the bucket is away.
func TestWorkBlob_NamesTheJobsOwnFolderOnly(t *testing.T) {
	lane.Component(t, "objects")
	w, gate, store, objects, away := bucketWorld(t)
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "f"), []byte("f"), 0o600))
	submit := func(name, store string) (attempt string) {
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"folder":%q,%s`, folder, keeping(name, store)[1:]), nil)
		return w.newest(name, "")
	}
	attempt := ""
	for _, c := range []struct {
		job, store string
		lent, away bool
	}{{"a", store, true, false}, {"b", store + "/x", true, false}, {"plain", "", false, false}, {"out", store, true, true}} {
		away.Store(c.away)
		attempt = submit(c.job, c.store)
		if as := w.take(attempt); as.WorkLent != c.lent {
			t.Errorf("%s: lent is %v", c.job, as.WorkLent)
		}
		code, at := w.blobOf(attempt, "?job=a")
		if code != http.StatusOK || (at.SHA256 != "") != (c.lent && !c.away) {
			t.Errorf("%s: %d %+v", c.job, code, at)
		}
		if at.SHA256 != "" {
			top := map[string]string{"a": objects, "b": filepath.Join(objects, "..", "x", "jobs")}[c.job]
			if _, err := os.Stat(filepath.Join(top, c.job, filepath.FromSlash(at.Key()))); err != nil {
				t.Error(err)
			}
		}
	}
	if code, at := w.blobOf(attempt, "?refused=%0Aforged"); code != http.StatusOK || at.SHA256 != "" ||
		!strings.Contains(w.log.String(), "why=unknown") {
		t.Errorf("%d %+v", code, at)
	}
	seen := len(gate.Seen())
	if rec, _ := w.ask("GET", "/v1/agent/work/blob", auth.OwnerName, nil); rec.Code/100 != 4 {
		t.Errorf("a user: %d", rec.Code)
	}
	attempt = submit("over", store)
	w.must("POST", "/v1/jobs/over/end", api.End{}, nil)
	w.until(func(m *core.Machine) bool { j, _ := m.Job("over"); return j.State().Over() && !j.Costs() })
	if code, _ := w.blobOf(attempt, ""); code != http.StatusGone || len(gate.Seen()) != seen {
		t.Errorf("an attempt that is over: %d, %d requests", code, len(gate.Seen())-seen)
	}
}

// scrimp gc removes the copy in the bucket, too, and nothing else there. If the bucket is away, it removes the
// folder here, reports the rest, and the next round removes that.
func TestGC_RemovesTheCopyInTheBucket(t *testing.T) {
	lane.Component(t, "objects")
	w, _, store, objects, away := bucketWorld(t)
	w.workBlobs.Rests = 0
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "f"), []byte("f"), 0o600))
	file := map[string]string{}
	for _, job := range []string{"a", "b"} {
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"folder":%q,%s`, folder, keeping(job, store)[1:]), nil)
		attempt := w.newest(job, "")
		code, at := w.blobOf(attempt, "")
		if code != http.StatusOK || at.SHA256 == "" {
			t.Fatalf("%d %+v", code, at)
		}
		file[job] = filepath.Join(objects, job, filepath.FromSlash(at.Key()))
		w.must("POST", "/v1/jobs/"+job+"/end", api.End{}, nil)
		w.until(func(m *core.Machine) bool { j, _ := m.Job(job); return j.State().Over() && !j.Costs() })
	}
	beside := filepath.Join(objects, "a", "claims")
	must.Do(t, os.WriteFile(beside, []byte("x"), 0o600))
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	take := func(b client.GC) (done client.GCDone) {
		b.OlderThan, b.Only = time.Nanosecond, []string{client.GCWork}
		w.must("POST", "/v1/gc", b, &done)
		return done
	}
	take(client.GC{DryRun: true})
	away.Store(true)
	if done := take(client.GC{Keep: []string{"b"}}); len(done.Items) != 1 || !strings.Contains(done.Items[0].Error, "remove the copy") ||
		strings.Contains(done.Items[0].Error, w.opts.Dir) || !there(file["a"]) {
		t.Errorf("%+v", done)
	}
	away.Store(false)
	if _, err := w.folders.Of("a"); err == nil || !there(file["b"]) {
		t.Errorf("the folder is there still: %v", err)
	}
	if done := take(client.GC{}); len(done.Items) != 2 || done.Items[0].Error != "" || done.Items[1].Error != "" ||
		there(file["a"]) || there(file["b"]) || !there(beside) {
		t.Errorf("%+v", done)
	}
	if done := take(client.GC{}); len(done.Items) != 0 {
		t.Errorf("%+v", done)
	}
}

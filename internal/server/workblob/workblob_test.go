//go:build !local

package workblob

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"scrimp/internal/content/blob"
	"scrimp/internal/engine"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// asked asks until the answer does not say to wait.
func (r *rig) asked(b *Blobs, job string) (at api.WorkBlob, err error) {
	for {
		if at, err = b.Ask(r.t.Context(), job, r.store); err != nil || !at.Wait {
			return at, err
		}
	}
}

// holds compares the job's blob with the bytes that the server sends.
func (r *rig) holds(job string, at api.WorkBlob) {
	r.t.Helper()
	b, err := r.bucket(job, "jobs/"+job+"/")
	must.Do(r.t, err)
	got, err := b.ReadAll(r.t.Context(), "jobs/"+job+"/"+at.Key())
	if err != nil || !bytes.Equal(got, r.sent(job)) || int64(len(got)) != at.Bytes {
		r.t.Errorf("%s has %d bytes, %v; told %+v", job, len(got), err, at)
	}
}

// Machines that ask at once do not upload the folder: the server does so once, in parts, with credentials for the
// job's own prefix. It reads the blob back, and gives all the same answer. After a restart it answers without a
// request to the bucket.
func TestAsk_UploadsAFolderOnce(t *testing.T) {
	lane.Component(t, "objects")
	r := newRig(t)
	r.folder("a", 12<<20)
	b, kill := r.server()
	told := make([]api.WorkBlob, 20)
	var all sync.WaitGroup
	for i := range told {
		all.Go(func() {
			var err error
			if told[i], err = r.asked(b, "a"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, at := range told {
		if at != told[0] || at.SHA256 == "" {
			t.Fatalf("told %+v and %+v", told[0], at)
		}
	}
	// a HEAD, three parts between create and complete, and one read
	if did := r.did(0, "team/jobs/a/"); did["s3:PutObject"] != 5 || did["s3:GetObject"] != 2 || r.cloud.Calls("AssumeRole") != 1 {
		t.Errorf("%v, the role assumed %d times", did, r.cloud.Calls("AssumeRole"))
	}
	kill()
	seen := len(r.gate.Seen())
	again, _ := r.server()
	if at, err := again.Ask(t.Context(), "a", r.store); err != nil || at != told[0] || len(r.gate.Seen()) != seen {
		t.Errorf("after a restart: %+v, %v, %d requests", at, err, len(r.gate.Seen())-seen)
	}
	r.holds("a", told[0])
	r.hidden()
}

// If a server is killed during an upload, or after it and before the record is complete, the folder is uploaded once
// in the end, whole, and no blob is without a record.
func TestAsk_UploadsOnceDespiteAKilledServer(t *testing.T) {
	lane.Component(t, "objects")
	for name, at := range map[string]string{"before it is there": http.MethodPut, "before it is on record": http.MethodGet} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.folder("a", 1000)
			b, kill := r.server()
			dead, killed := make(chan struct{}), make(chan struct{})
			r.on(func(_ http.ResponseWriter, q *http.Request) bool {
				if q.Method != at || !strings.Contains(q.URL.Path, "/work/") {
					return false
				}
				close(dead)
				<-killed // the request to kill
				return true
			})
			go func() { <-dead; kill(); close(killed) }()
			if at, err := b.Ask(t.Context(), "a", r.store); !errors.Is(err, ErrServer) {
				t.Errorf("%+v, %v", at, err)
			}
			if rec, err := b.record("a"); err != nil || rec.Whole {
				t.Errorf("the record is %+v, %v", rec, err)
			}
			<-killed
			r.on(nil)
			seen := len(r.gate.Seen())
			again, _ := r.server()
			told, err := r.asked(again, "a")
			must.Do(t, err)
			want := 0
			if at == http.MethodPut {
				want = 1
			}
			if did := r.did(seen, "team/jobs/a/"); did["s3:PutObject"] != want || did["s3:DeleteObject"] != 0 {
				t.Errorf("%v", did)
			}
			r.holds("a", told)
		})
	}
}

// The server checks a copy that an agent found damaged or missing, once in a while, and uploads it anew; it does not
// check one that the agent could not reach.
func TestRefused_ReplacesADamagedCopy(t *testing.T) {
	lane.Component(t, "objects")
	r := newRig(t)
	r.folder("a", 1000)
	b, _ := r.server()
	told, err := r.asked(b, "a")
	must.Do(t, err)
	file := r.file("a", told.Key())
	text, err := os.ReadFile(file)
	must.Do(t, err)
	text[600] ^= 1
	hurt := func() {
		must.Do(t, os.WriteFile(file, text, 0o600))
	}
	hurt()
	b.Refused("a", "a.1", api.WorkAway)
	seen := len(r.gate.Seen())
	if at, err := b.Ask(t.Context(), "a", r.store); err != nil || at != told || len(r.gate.Seen()) != seen {
		t.Errorf("%+v, %v, %d requests", at, err, len(r.gate.Seen())-seen)
	}
	b.Refused("a", "a.1", api.WorkDamaged)
	if at, err := r.asked(b, "a"); err != nil || at != told {
		t.Errorf("%+v, %v", at, err)
	}
	if did := r.did(seen, "team/jobs/a/"); did["s3:DeleteObject"] != 1 || did["s3:PutObject"] != 1 {
		t.Errorf("%v", did)
	}
	r.holds("a", told)
	hurt()
	b.Refused("a", "a.2", api.WorkDamaged) // soon after: repeated reports cause no work
	seen = len(r.gate.Seen())
	if at, err := b.Ask(t.Context(), "a", r.store); err != nil || at != told || len(r.gate.Seen()) != seen {
		t.Errorf("%+v, %v, %d requests", at, err, len(r.gate.Seen())-seen)
	}
	if n := strings.Count(r.log.String(), "was not taken from its job's bucket"); n != 3 {
		t.Errorf("said %d times in %s", n, r.log)
	}
	must.Do(t, os.Remove(file))
	delete(b.doubts, "a")
	b.Refused("a", "a.3", api.WorkMissing)
	if at, err := r.asked(b, "a"); err != nil || at != told {
		t.Errorf("%+v, %v", at, err)
	}
	r.holds("a", told)
}

// If the bucket is away, credentials are refused, or there is no folder or declared store, the agent fetches the
// folder from the server.
func TestAsk_FallsBackToTheServer(t *testing.T) {
	lane.Component(t, "objects")
	r := newRig(t)
	r.folder("a", 1000)
	r.folder("b", 1000)
	b, _ := r.server()
	r.on(away)
	if at, err := r.asked(b, "a"); !errors.Is(err, ErrServer) || at.SHA256 != "" {
		t.Errorf("%+v, %v", at, err)
	}
	r.on(nil)
	if at, err := b.Ask(t.Context(), "a", r.store); !errors.Is(err, ErrServer) || len(r.gate.Seen()) != 0 {
		t.Errorf("a moment later: %+v, %v, %d requests", at, err, len(r.gate.Seen()))
	}
	delete(b.failed, "a")
	if at, err := r.asked(b, "a"); err != nil || at.SHA256 == "" {
		t.Errorf("once it is back: %+v, %v", at, err)
	}
	must.Do(t, r.cloud.Inject(awstest.Fault{Action: "AssumeRole", Kind: "error", Code: "AccessDenied", Status: 403}))
	if at, err := r.asked(b, "b"); !errors.Is(err, ErrServer) || at.SHA256 != "" || !strings.Contains(r.log.String(), "trust policy") {
		t.Errorf("%+v, %v; %s", at, err, r.log)
	}
	seen := len(r.gate.Seen())
	for job, store := range map[string]string{"a": "s3://other?region=us-east-1", "none": r.store} {
		if at, err := b.Ask(t.Context(), job, store); !errors.Is(err, ErrServer) || at.SHA256 != "" {
			t.Errorf("%s in %s: %+v, %v", job, store, at, err)
		}
	}
	if n := len(r.gate.Seen()) - seen; n != 0 {
		t.Errorf("%d requests", n)
	}
	r.hidden()
}

// With its credentials a job can neither read, list, write nor delete another job's work folder.
func TestCredentials_CannotReachAnotherJobsFolder(t *testing.T) {
	lane.Component(t, "objects")
	r := newRig(t)
	r.folder("a", 1000)
	b, _ := r.server()
	told, err := r.asked(b, "a")
	must.Do(t, err)
	if _, err := r.bucket("ab", "jobs/a/"); err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("it lists: %v", err)
	}
	other, err := r.bucket("ab", "jobs/ab/")
	must.Do(t, err)
	key := "jobs/a/" + told.Key()
	if _, err := other.ReadAll(t.Context(), key); err == nil || blob.Missing(err) {
		t.Errorf("it reads: %v", err)
	}
	if err := other.WriteAll(t.Context(), key, nil, nil); err == nil {
		t.Error("it writes")
	}
	if err := other.Delete(t.Context(), key); err == nil || blob.Missing(err) {
		t.Errorf("it deletes: %v", err)
	}
	r.holds("a", told)
}

// A removal deletes all of the job's work folders in the bucket and nothing else of the job. If the bucket is away,
// the record stays until it can.
func TestDrop_RemovesTheCopyOrKeepsTheRecord(t *testing.T) {
	lane.Component(t, "objects")
	r := newRig(t)
	r.folder("a", 1000)
	r.folder("b", 1000)
	b, _ := r.server()
	told, err := r.asked(b, "a")
	must.Do(t, err)
	own, err := r.bucket("a", "jobs/a/")
	must.Do(t, err)
	for _, key := range []string{"work/older", "claims/1", "workers"} {
		must.Do(t, own.WriteAll(t.Context(), "jobs/a/"+key, []byte("x"), nil))
	}
	r.on(away)
	if err := b.Drop(t.Context(), "a"); err == nil {
		t.Error("nothing is said")
	}
	r.on(nil)
	if err := b.Drop(t.Context(), "a"); !errors.Is(err, errAway) {
		t.Errorf("a moment later: %v", err)
	}
	if jobs, err := b.Jobs(); err != nil || len(jobs) != 1 || jobs[0] != "a" {
		t.Errorf("on record are %v, %v", jobs, err)
	}
	undeclared := New(r.folders, func(string, string) (engine.Lender, string) { return nil, "" }, b.Errors)
	if jobs, err := undeclared.Jobs(); err != nil || len(jobs) != 0 || undeclared.Drop(t.Context(), "a") != nil {
		t.Errorf("without an engine: %v, %v", jobs, err)
	}
	clear(b.away)
	if err := errors.Join(b.Drop(t.Context(), "a"), b.Drop(t.Context(), "b")); err != nil {
		t.Error(err)
	}
	for key, want := range map[string]bool{told.Key(): false, "work/older": false, "claims/1": true, "workers": true} {
		if _, err := os.Stat(r.file("a", key)); errors.Is(err, fs.ErrNotExist) == want {
			t.Errorf("%s: %v", key, err)
		}
	}
	if jobs, err := b.Jobs(); err != nil || len(jobs) != 0 {
		t.Errorf("on record are %v, %v", jobs, err)
	}
	if err := os.WriteFile(filepath.Join(b.dir(), ".a.123"), nil, 0o600); err != nil { // left by a crash
		t.Fatal(err)
	}
	if jobs, err := b.Jobs(); err != nil || len(jobs) != 0 {
		t.Errorf("on record are %v, %v", jobs, err)
	}
}

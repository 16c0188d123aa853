//go:build !local

package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gcblob "gocloud.dev/blob"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/content/tarball"
	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// tarOf returns a work folder as a server sends it.
func tarOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := tarball.Scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := f.Write(t.Context(), &b, 0); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// toldOf returns the server's description of a tar file that it put into the bucket.
func toldOf(text []byte) api.WorkBlob {
	sum := sha256.Sum256(text)
	return api.WorkBlob{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(text))}
}

// bucket returns the bucket of job-1, with its credentials.
func (l *lending) bucket() *gcblob.Bucket {
	l.t.Helper()
	b, err := blob.OpenLent(l.t.Context(), l.store, blob.Loan{Prefix: "jobs/job-1/",
		Fetch: func(ctx context.Context) (scopedcreds.Credentials, error) { return l.of(ctx, "job-1") }})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = b.Close() })
	return b
}

// onWork calls f for each request for a work folder in the bucket.
func (l *lending) onWork(f func(http.ResponseWriter) http.ResponseWriter) {
	see := func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/jobs/job-1/work/") {
			return f(w)
		}
		return w
	}
	l.before.Store(&see)
}

// answers is an S3 response with a status instead of the content.
type answers struct {
	http.ResponseWriter
	status int
}

func (a answers) WriteHeader(int)           { a.ResponseWriter.WriteHeader(a.status) }
func (answers) Write(p []byte) (int, error) { return len(p), nil }

// A machine gets its work folder from the job's bucket, even over a connection that breaks, if the
// blob is what the server described. If anything is wrong with the blob, the agent leaves nothing
// of it and gets the folder from the server; the log names the reason, and the server learns it.
func TestWorkBlob_FallsBackToServer(t *testing.T) {
	lane.Component(t, "objects")
	l := newLending(t)
	whole := tarOf(t, map[string]string{"from": "the bucket", "more": strings.Repeat("x", 3<<20)})
	flipped := slices.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	evil := bytes.Replace(whole, []byte("more"), []byte("../m"), 1)
	served := t.TempDir()
	if err := os.WriteFile(filepath.Join(served, "from"), []byte("the server"), 0o600); err != nil {
		t.Fatal(err)
	}
	same := func(w http.ResponseWriter) http.ResponseWriter { return w }
	says := func(status int) func(http.ResponseWriter) http.ResponseWriter {
		return func(w http.ResponseWriter) http.ResponseWriter { return answers{w, status} }
	}
	cuts := 0
	for i, c := range []struct {
		name    string
		lies    []byte // nil: no blob
		told    api.WorkBlob
		on      func(http.ResponseWriter) http.ResponseWriter
		refused string // empty: the folder comes from the bucket
	}{
		{"whole", whole, toldOf(whole), same, ""},
		{"cut off", whole, toldOf(whole), func(w http.ResponseWriter) http.ResponseWriter {
			if cuts++; cuts < 4 {
				return &cutting{ResponseWriter: w, left: 700_000}
			}
			return w
		}, ""},
		{"flipped", flipped, toldOf(whole), same, api.WorkDamaged},
		{"longer", append(slices.Clone(whole), 0), toldOf(whole), same, api.WorkDamaged},
		{"shorter", whole[:len(whole)-512], toldOf(whole), same, api.WorkDamaged},
		{"no tar file", []byte("no"), toldOf(whole), same, api.WorkDamaged},
		{"leads out", evil, toldOf(evil), same, api.WorkAway}, // the server has the same, so nobody can repair it
		{"no hash", whole, api.WorkBlob{SHA256: "../../b/work/1", Bytes: 1}, same, api.WorkDamaged},
		{"missing", nil, toldOf(whole), same, api.WorkMissing},
		{"away", whole, toldOf(whole), says(http.StatusNotImplemented), api.WorkAway},
		{"denied", whole, toldOf(whole), says(http.StatusForbidden), api.WorkAway},
		{"not told", whole, api.WorkBlob{}, same, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := l.bucket()
			_ = b.Delete(t.Context(), "jobs/job-1/"+toldOf(whole).Key()) // it may be missing
			if c.lies != nil {
				key := "jobs/job-1/" + toldOf(whole).Key()
				if c.name == "leads out" {
					key = "jobs/job-1/" + c.told.Key()
				}
				if err := b.WriteAll(t.Context(), key, c.lies, nil); err != nil {
					t.Fatal(err)
				}
			}
			l.onWork(c.on)
			waits := 2
			r := l.play(i+1, func(a *api.Assignment) {
				a.Workdir, a.WorkLent, a.Args = api.ServerWork, true, nil
				a.Command = `cat from; test "$(cat from)" = "the bucket" || test ! -e more || echo, and more is left`
			}, func(s *fakeServer) {
				s.work = served
				s.works = func() api.WorkBlob {
					if waits--; waits >= 0 {
						return api.WorkBlob{Wait: true}
					}
					return c.told
				}
			})
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			want, refused := "the bucket", []string(nil)
			if c.refused != "" {
				want = "the server"
			}
			if len(c.refused) > 1 {
				refused = []string{c.refused}
			}
			if got := string(r.server.log); got != want || !slices.Equal(r.server.turnedDown, refused) {
				t.Errorf("it is %q, refused as %v", got, r.server.turnedDown)
			}
			if says := strings.Contains(r.logs.String(), "the server sends it"); says != (refused != nil) {
				t.Errorf("the log: %s", r.logs)
			}
			l.hidden(r)
		})
	}
	if cuts < 4 {
		t.Errorf("%d requests over the connection that breaks off", cuts)
	}
}

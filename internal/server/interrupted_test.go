package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/workdir"
	"scrimp/internal/test/must"
)

// contentOf lists the files of a data folder that a submission writes before its event, in the order of the writes:
// contents of the work folder, its name, the key of the vault, the secrets.
func contentOf(t testing.TB, dir string) (files []string) {
	t.Helper()
	rank := func(name string) int {
		return slices.IndexFunc([]string{"folders/objects/", "folders/", "secrets.key", "secrets/"},
			func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
	must.Do(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err == nil && e.Type().IsRegular() && rank(name) >= 0 && !strings.HasPrefix(name, "folders/seen/") { // a cache
			files = append(files, name)
		}
		return err
	}))
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return files
}

// restarted returns a server on the data folder of a killed one.
func restarted(t testing.TB, dir string) *world {
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Dir = dir })
	must.Do(t, w.folders.Recover())
	_, err := w.outbox.Unsent()
	must.Do(t, err)
	return w
}

// A server that is killed between any two writes of a submission starts again; the same submission then succeeds once,
// with its folder and secrets; gc removes what nothing names; and the ledger's sums are what the jobs cost. A kill
// leaves a prefix of the writes, and the last may be cut. The log is written last, in one transaction.
func TestSubmit_SurvivesAKillBetweenAnyTwoWrites(t *testing.T) {
	t.Parallel()
	folder := folderWith(t, map[string]string{"train.py": "print(1)", "data/a": "one", "data/b": "two"})
	for _, k := range []struct{ path, job, body string }{
		{"/v1/jobs", "made", `{"key":"k","folder":%q,"secrets":{"KEY":"hers"},"spec":{"name":"made","command":"true"}}`},
		{"/v1/groups", "made.0",
			`{"key":"k","folder":%q,"secrets":{"KEY":"hers"},"array":"0-0","spec":{"name":"made","command":"true"}}`},
	} {
		body := fmt.Sprintf(k.body, folder)
		clean, whole := t.TempDir(), t.TempDir()
		t.Run("clean"+k.path, func(t *testing.T) { restarted(t, clean) })
		must.Do(t, os.CopyFS(whole, os.DirFS(clean)))
		t.Run("whole"+k.path, func(t *testing.T) { restarted(t, whole).must("POST", k.path, json.RawMessage(body), nil) })
		had := contentOf(t, clean)
		writes := slices.DeleteFunc(contentOf(t, whole), func(name string) bool { return slices.Contains(had, name) })
		if len(writes) < 6 {
			t.Fatalf("%s writes %v", k.path, writes)
		}
		for n := range len(writes) + 2 {
			for _, cut := range []bool{false, true} {
				if cut && (n == 0 || n > len(writes) || !strings.HasPrefix(writes[n-1], "secrets/")) {
					continue // the store renames its files when they are complete
				}
				dir := t.TempDir()
				if n > len(writes) { // killed after the log was written, before the answer
					must.Do(t, os.CopyFS(dir, os.DirFS(whole)))
				} else {
					must.Do(t, os.CopyFS(dir, os.DirFS(clean)))
					prefix(t, whole, dir, writes[:n], cut)
				}
				t.Run(fmt.Sprintf("%d of %d%s cut %v", n, len(writes), k.path, cut), func(t *testing.T) {
					w := restarted(t, dir)
					if n <= len(writes) {
						w.removesLeftovers(had)
						prefix(t, whole, dir, writes[:n], cut)
					}
					w.must("POST", k.path, json.RawMessage(body), nil)
					w.must("POST", k.path, json.RawMessage(body), nil) // the client tries again
					w.completes(k.job)
				})
			}
		}
	}
}

// prefix copies files from one data folder to another, as an interrupted submission leaves them; cut truncates the last.
func prefix(t testing.TB, from, to string, files []string, cut bool) {
	t.Helper()
	for i, name := range files {
		text, err := os.ReadFile(filepath.Join(from, name))
		must.Do(t, err)
		if cut && i == len(files)-1 {
			text = text[:len(text)/2]
		}
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(to, name), text, 0o600))
	}
}

// removesLeftovers runs gc on content that no event names, and expects only the key of the vault to stay.
func (w *world) removesLeftovers(had []string) {
	w.t.Helper()
	dir := w.opts.Dir
	old := time.Now().Add(-100 * 24 * time.Hour) // gc spares what may be in submission
	for _, name := range contentOf(w.t, dir) {
		path := filepath.Join(dir, name)
		if strings.HasPrefix(name, "folders/jobs/") {
			var ref workdir.Ref
			text, err := os.ReadFile(path)
			must.Do(w.t, errors.Join(err, json.Unmarshal(text, &ref)))
			ref.Kept = old
			text, err = json.Marshal(ref)
			must.Do(w.t, errors.Join(err, os.WriteFile(path, text, 0o600)))
		}
		must.Do(w.t, os.Chtimes(path, old, old))
	}
	w.must("POST", "/v1/gc", client.GC{OlderThan: 1}, nil)
	for _, name := range contentOf(w.t, dir) {
		if name != "secrets.key" && !slices.Contains(had, name) {
			w.t.Errorf("gc leaves %s, which nothing names", name)
		}
	}
}

// completes lets the only job run, with the folder and secrets that its submission sent, and adds up the ledger.
func (w *world) completes(job string) {
	w.t.Helper()
	attempt := w.live(job)
	rec, _ := w.ask("GET", "/v1/agent/work", w.gate.Tickets.For(auth.AttemptTicket, attempt), nil)
	if rec.Code != http.StatusOK || !bytes.Contains(rec.Body.Bytes(), []byte("print(1)")) || w.secrets(job)["KEY"] != "hers" {
		w.t.Errorf("the machine gets %d %.200q and the secrets %v", rec.Code, rec.Body, w.secrets(job))
	}
	machine := w.instance(attempt)
	w.event(core.AttemptStarted{Attempt: attempt, Message: 1}, time.Minute)
	w.event(core.AttemptEnded{Attempt: attempt, Message: 2, Reason: "completed"}, time.Hour)
	w.until(func(m *core.Machine) bool { j, _ := m.Job(job); return j.State() == core.Succeeded })
	w.event(core.InstanceEnded{Instance: machine, Until: w.control.Now().Add(2 * time.Hour), Cause: "terminated"}, 2*time.Hour)
	jobs, postings := money.Amount{}, money.Amount{}
	w.control.Read(func(m *core.Machine) {
		n := 0
		for j := range m.Jobs() {
			jobs, n = jobs.Add(j.Spent(w.control.Now().Add(9*time.Hour))), n+1
		}
		if n != 1 {
			w.t.Errorf("%d jobs came of one submission", n)
		}
	})
	for p, err := range w.store.Postings(w.t.Context(), w.control.Tenant(), "") {
		must.Do(w.t, err)
		postings = postings.Add(p.Amount)
	}
	if jobs != postings || jobs == (money.Amount{}) {
		w.t.Errorf("the job cost %v, and the postings sum to %v", jobs, postings)
	}
}

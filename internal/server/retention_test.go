package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/confined"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// left gives a job a folder, output, stored outputs and two checkpoints; the job waits.
func (w *world) left(t *testing.T, job string) {
	t.Helper()
	var sent api.Work
	w.must("POST", "/v1/work", folderOf(t, map[string]string{"train.py": "of " + job, "same": strings.Repeat("s", 1<<20)}), &sent)
	w.must("POST", "/v1/jobs", fmt.Sprintf(`{"work":%q,%s`, sent.Work, aJob(job, "")[1:]), nil)
	if _, err := w.store.AppendLog(t.Context(), job+".1", 0, []byte("printed\n")); err != nil {
		t.Fatal(err)
	}
	must.Do(t, w.store.AppendSeries(t.Context(), job+".1~3", []byte("measured")))
	dir := t.TempDir()
	err := w.kept.Own(t.Context(), job, func(s *checkpoint.Store) error {
		writer, err := s.Claim(t.Context(), 1, job+".1")
		for step := int64(1); err == nil && step <= 2; step++ {
			if err = os.WriteFile(filepath.Join(dir, "state"), []byte(strings.Repeat(fmt.Sprint(step), 1<<20)), 0o600); err == nil {
				_, _, err = writer.Publish(t.Context(), dir, format.Meta{Job: job, Step: step})
			}
		}
		if err == nil {
			_, _, err = s.Keep(t.Context(), confined.Folder{Path: dir}, []string{"."}, api.OutputsName(job, 0))
		}
		return err
	})
	must.Do(t, err)
}

// gone lists the things that a request removes, each as JOB KIND.
func (w *world) gone(b client.GC) (things []string, done client.GCDone) {
	w.t.Helper()
	w.must("POST", "/v1/gc", b, &done)
	for _, i := range done.Items {
		if i.Why == "" || i.Error != "" {
			w.t.Errorf("%+v", i)
		}
		things = append(things, i.Job+" "+i.Kind)
	}
	return things, done
}

// Old files of finished jobs are removed, and none of waiting jobs. The server reports when files were removed;
// costs and decisions of the jobs stay.
func TestGC_RemovesFilesOfFinishedJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, job := range []string{"over", "other", "waits"} {
		w.left(t, job)
	}
	for _, job := range []string{"over", "other"} {
		w.must("POST", "/v1/jobs/"+job+"/end", api.End{}, nil)
	}
	receipt, _ := w.ask("GET", "/v1/jobs/over/receipt", auth.OwnerName, nil)
	if things, _ := w.gone(client.GC{}); len(things) > 0 {
		t.Errorf("what is new goes: %q", things)
	}
	if things, _ := w.gone(client.GC{OlderThan: time.Hour}); len(things) > 0 {
		t.Errorf("what is younger than an hour goes: %q", things)
	}
	used := func() (bytes int64) { // the log grows meanwhile
		for _, part := range []string{"blobs", "folders", "logs"} {
			bytes += disk.Used(filepath.Join(w.opts.Dir, part))
		}
		return bytes
	}
	before := used()
	want := []string{"over checkpoints", "over logs", "over outputs", "over work"}
	dry, said := w.gone(client.GC{OlderThan: 1, Keep: []string{"other"}, DryRun: true})
	if !slices.Equal(dry, want) || !said.DryRun {
		t.Errorf("a dry run lists %q, want %q", dry, want)
	}
	if now := used(); now != before {
		t.Errorf("a dry run removes %d bytes", before-now)
	}
	things, done := w.gone(client.GC{OlderThan: 1, Keep: []string{"other"}})
	if left, err := w.store.AllSeries(t.Context()); err != nil || len(left) != 2 || left["over.1~3"] != 0 {
		t.Errorf("measurements left: %v, %v", left, err)
	}
	if !slices.Equal(things, want) {
		t.Errorf("removed: %q, want %q", things, want)
	}
	if back := before - used(); back < 2<<20 || back < done.Bytes || done.Bytes < 2<<20 {
		t.Errorf("%d bytes are given back, and %d said", back, done.Bytes)
	}
	for _, c := range []struct{ method, path, body, words string }{
		{"POST", "/v1/jobs", `{"rerun":"over",` + aJob("again", "")[1:], "work folder of over was removed on 20"},
		{"POST", "/v1/jobs/over/resume", `{}`, "work folder of over was removed on 20"},
		{"GET", "/v1/jobs/over/kept", "", "kept output of over was removed on 20"},
		{"GET", "/v1/jobs/over/outputs", "", "kept output of over was removed on 20"},
	} {
		if rec, p := w.ask(c.method, c.path, auth.OwnerName, c.body); rec.Code != http.StatusGone ||
			!strings.Contains(p.Title, c.words) || p.Fix == "" {
			t.Errorf("%s %s: %d %+v", c.method, c.path, rec.Code, p)
		}
	}
	if rec, _ := w.ask("GET", "/v1/jobs/over/log", auth.OwnerName, nil); !strings.Contains(rec.Body.String(), "removed then") ||
		strings.Contains(rec.Body.String(), "printed") {
		t.Errorf("the output: %s", rec.Body)
	}
	if rec, _ := w.ask("GET", "/v1/jobs/over/receipt", auth.OwnerName, nil); rec.Code != 200 ||
		rec.Body.String() != receipt.Body.String() {
		t.Errorf("the receipt is another: %s", rec.Body)
	}
	for _, path := range []string{"/v1/jobs/over/explain", "/v1/costs?by=job", "/v1/ledger/verify", "/v1/jobs/over"} {
		if rec, _ := w.ask("GET", path, auth.OwnerName, nil); rec.Code != 200 {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	w.still(t, "over", 1)
	for _, job := range []string{"waits", "other"} {
		w.still(t, job, 2)
		if rec, _ := w.ask("GET", "/v1/jobs/"+job+"/outputs", auth.OwnerName, nil); rec.Code != 200 {
			t.Errorf("%s: %s", job, rec.Body)
		}
		if rec, _ := w.ask("POST", "/v1/jobs", auth.OwnerName, `{"rerun":"`+job+`",`+aJob("from-"+job, "")[1:]); rec.Code != 200 {
			t.Errorf("%s: %s", job, rec.Body)
		}
	}
	if things, _ := w.gone(client.GC{OlderThan: 1, Only: []string{"checkpoints"}, NewestCheckpoints: true}); !slices.Equal(things,
		[]string{"other checkpoints", "over checkpoints"}) {
		t.Errorf("with the newest: %q", things)
	}
	w.still(t, "over", 0)
	w.still(t, "waits", 2)
}

// still checks how many checkpoints a job has, and that the newest is complete.
func (w *world) still(t *testing.T, job string, n int) {
	t.Helper()
	var list []api.Checkpoint
	w.must("GET", "/v1/jobs/"+job+"/checkpoints", nil, &list)
	if len(list) != n {
		t.Errorf("%s has %d checkpoints, want %d", job, len(list), n)
	}
	if rec, p := w.ask("GET", "/v1/jobs/"+job+"/checkpoints/latest", auth.OwnerName, nil); rec.Code != 200 != (n == 0) {
		t.Errorf("the newest of %s: %d %+v", job, rec.Code, p)
	}
}

// Unknown kinds are refused, and only admins remove files.
func TestGC_RefusesUnknownKindsAndNonAdmins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if rec, p := w.ask("POST", "/v1/gc", auth.OwnerName, client.GC{Only: []string{"blobs"}}); rec.Code != 422 || p.Field != "only" {
		t.Errorf("%d %+v", rec.Code, p)
	}
}

// By itself the server removes old work folders and older checkpoints, and keeps outputs and the newest checkpoint.
func TestRetention_RemovesOldFilesByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Retain = time.Nanosecond })
	w.left(t, "over")
	w.must("POST", "/v1/jobs/over/end", api.End{}, nil)
	things, _ := w.gone(client.GC{})
	if want := []string{"over checkpoints", "over logs", "over work"}; !slices.Equal(things, want) {
		t.Errorf("%q, want %q", things, want)
	}
	w.still(t, "over", 1)
	for name, o := range map[string]Options{"for ever": {Retain: -1}, "by default": {}} {
		w := newWorld(t, func(is *Options) { is.Retain = o.Retain })
		w.left(t, "over")
		w.must("POST", "/v1/jobs/over/end", api.End{}, nil)
		if things, _ := w.gone(client.GC{}); len(things) > 0 {
			t.Errorf("%s: %q", name, things)
		}
	}
}

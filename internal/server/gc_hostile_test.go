package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// Programs of the server's user can leave links that lead out, pipes, folders 100 deep and names that are not UTF-8
// in the data folder. gc still makes room: it removes nothing outside, never blocks, and keeps what running jobs
// need.
func TestGC_SurvivesAHostileDataFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, job := range []string{"over", "waits"} {
		w.left(t, job)
	}
	w.must("POST", "/v1/jobs/over/end", api.End{}, nil)
	dir, outside := w.opts.Dir, t.TempDir()
	victims := []string{"kept/state", "outputs/state", "state"}
	for _, v := range victims {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(outside, v)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(outside, v), []byte("not ours"), 0o600))
	}
	at := func(names ...string) string {
		path := filepath.Join(append([]string{dir}, names...)...)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		return path
	}
	for _, pipe := range []string{"folders/jobs/pipe", "folders/sent/pipe", "folders/objects/00/pipe", "logs/over.9.log",
		"logs/\xff\xfe.1.log.series", "blobs/jobs/over/outputs/pipe", "blobs/jobs/over/objects/kept/pipe", "blobs/jobs/pipe",
		"blobs/jobs/over/manifests/pipe.json"} {
		must.Do(t, syscall.Mkfifo(at(pipe), 0o600))
	}
	for _, link := range []string{"folders/jobs/link", "folders/objects/00/link", "logs/over.8.log", "blobs/jobs/link",
		"blobs/jobs/planted/outputs", "blobs/jobs/planted/objects", "blobs/jobs/over/outputs/link"} {
		must.Do(t, os.Symlink(outside, at(link)))
	}
	must.Do(t, os.WriteFile(at("logs/\xff\xfe.1.log"), []byte("x"), 0o600))
	must.Do(t, os.MkdirAll(at("blobs/jobs/\xff\xfe/outputs", strings.Repeat("d/", 100)), 0o700))
	must.Do(t, os.MkdirAll(at("blobs/jobs/over/outputs", strings.Repeat("d/", 100)), 0o700))
	old := time.Now().Add(-1000 * time.Hour)
	must.Do(t, os.Chtimes(at("blobs/jobs/planted"), old, old))

	rec, _ := w.ask("POST", "/v1/gc", auth.OwnerName, client.GC{OlderThan: 1})
	if rec.Code != http.StatusOK {
		t.Fatalf("%d: %s", rec.Code, rec.Body)
	}
	for _, v := range victims {
		if text, err := os.ReadFile(filepath.Join(outside, v)); string(text) != "not ours" {
			t.Errorf("%s outside: %q, %v", v, text, err)
		}
	}
	for _, gone := range []string{"folders/jobs/over", "logs/over.1.log", "blobs/jobs/over/outputs"} {
		if _, err := os.Lstat(at(gone)); err == nil {
			t.Errorf("%s stays: %s", gone, rec.Body)
		}
	}
	for _, stays := range []string{"folders/jobs/waits", "logs/waits.1.log", "blobs/jobs/waits/outputs"} {
		if _, err := os.Lstat(at(stays)); err != nil {
			t.Errorf("of a job that goes on: %v", err)
		}
	}
	var sent api.Work // the store of folders still works
	w.must("POST", "/v1/work", folderOf(t, map[string]string{"train.py": "later"}), &sent)
}

package server

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// smallDisk mounts a folder of the given size for the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("skipped: a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillUp fills a disk to the last byte.
func fillUp(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "filler")
	f, err := os.Create(path)
	for _, step := range []int{1 << 20, 4096} {
		for err == nil {
			_, err = f.Write(make([]byte, step))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	must.Do(t, f.Close())
	return path
}

// On a disk that something else has filled, the server answers, ends jobs, records that, and stops; new jobs wait.
// With room again, it accepts them and restores its reserve.
func TestFullDisk_ServerAnswersAndStops(t *testing.T) {
	lane.Component(t, "host")
	dir := smallDisk(t, "150m")
	w := newWorld(t, func(o *Options) { o.Dir = dir })
	if held, err := w.reserve.Take(); err != nil || !held {
		t.Fatalf("held %v, %v", held, err)
	}
	for _, job := range []string{"a", "b", "c"} {
		w.must("POST", "/v1/jobs", aJob(job, ""), nil)
	}
	filler := fillUp(t, dir)
	w.free.Store(1)
	for _, job := range []string{"a", "b"} {
		var j api.Job
		w.must("POST", "/v1/jobs/"+job+"/end", api.End{}, &j)
		if j.State != "cancelled" {
			t.Errorf("%s is %s", job, j.State)
		}
	}
	if !strings.Contains(w.log.String(), "the disk is full") {
		t.Errorf("the log says nothing of it: the test is void\n%s", w.log)
	}
	for _, path := range []string{"/v1/jobs", "/v1/jobs/a", "/v1/jobs/a/log", "/v1/costs", "/v1/server"} {
		if rec, p := w.ask("GET", path, auth.OwnerName, nil); rec.Code != http.StatusOK {
			t.Errorf("%s: %d %+v", path, rec.Code, p)
		}
	}
	for path, body := range map[string]string{"/v1/jobs": aJob("d", ""), "/v1/work": folderOf(t, map[string]string{"a": "b"})} {
		if rec, p := w.ask("POST", path, auth.OwnerName, body); rec.Code != http.StatusInsufficientStorage || p.Fix == "" {
			t.Errorf("%s: %d %+v", path, rec.Code, p)
		}
	}
	if rec, p := w.ask("POST", "/v1/server/stop", auth.OwnerName, api.StopServer{}); rec.Code != http.StatusNoContent {
		t.Errorf("the server does not end: %d %+v", rec.Code, p)
	}
	must.Do(t, os.Remove(filler))
	w.free.Store(0)
	w.reserve.Room = disk.Of(dir)
	eventually.True(t, "a job is taken again", func() bool {
		rec, _ := w.ask("POST", "/v1/jobs", auth.OwnerName, aJob("d", ""))
		return rec.Code == http.StatusOK
	})
	if held, err := w.reserve.Take(); err != nil || !held {
		t.Errorf("the reserve is not held again: %v, %v", held, err)
	}
}

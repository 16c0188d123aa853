package agent

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// smallDisk returns a folder on a disk of that size, which the test removes at its end.
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

func TestAgent_ReportsFullDiskAndSavesOnceThereIsRoom(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	store := t.TempDir()
	a := stored(t, store, 1, "burn", "TEST_ROUNDS=1000000") // it saves 1 MiB under a temporary name
	r := newRig(t, a)
	r.config.open, r.config.MachineDir = nil, smallDisk(t, "6m")
	// The disk has room for the program's files, but not for a copy of the whole folder.
	filler := r.task("checkpoint/old")
	if err := os.MkdirAll(filepath.Dir(filler), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filler, make([]byte, 7<<19), 0o600); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.server.wait("the trouble", func() bool { return strings.Contains(r.server.trouble, "no space left on device") })
	if n := manifests(t, store); len(n) > 0 {
		t.Errorf("kept are %v: the test is void", n)
	}
	if got := r.server.story(); got != "started" {
		t.Errorf("story %s: the program should run on", got)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	r.server.waitFor("a checkpoint", func(m api.Message) bool { return m.Saved != nil })
	r.server.wait("the end of the trouble", func() bool { return r.server.trouble == "" })
	left, err := filepath.Glob(r.task(".*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 1 { // a capture may be in progress
		t.Errorf("left of captures that broke off: %v", left)
	}
	r.server.order(func() { r.server.orders.Off = true })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}

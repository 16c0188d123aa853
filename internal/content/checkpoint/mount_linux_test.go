package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/confined"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// mount mounts a small file system at dir.
func mount(t testing.TB, dir string) {
	t.Helper()
	must.Do(t, os.MkdirAll(dir, 0o755))
	if err := syscall.Mount("scrimp", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("the right to mount a tmpfs is not installed: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

// A checkpoint folder that is a mount, and so cannot be renamed, can still be captured and restored.
func TestCapture_WorksOnAMount(t *testing.T) {
	lane.Component(t, "host")
	b := openFolder(t, fast.Dir(t))
	dir := filepath.Join(t.TempDir(), "mount")
	mount(t, dir)
	put(t, dir, "a/f", "one")
	want := read(t, dir)
	w := claim(t, open(b), 1)
	publish(t, w, dir, 1)
	put(t, dir, "a/f", "two")
	put(t, dir, "more", "left over")
	if _, err := w.Restore(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir); !got.equal(want) {
		t.Errorf("differs:%s", want.diff(got))
	}
}

// A copy without enough room does not take the space that the program needs for its own next save.
func TestCapture_DoesNotStartACopyWithoutRoom(t *testing.T) {
	lane.Component(t, "host")
	disk := filepath.Join(t.TempDir(), "disk")
	mount(t, disk)
	dir := filepath.Join(disk, "c")
	put(t, dir, "f", strings.Repeat("x", 600<<10))
	holes, err := os.Create(filepath.Join(dir, "g"))
	must.Do(t, err)
	must.Do(t, errors.Join(holes.Truncate(1<<30), holes.Close()))
	c := &folder.Capturer{Folder: confined.Folder{Path: dir}, Copy: true}
	_, err = c.Capture(t.Context())
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "a copy of f takes 600KiB, and 424KiB of its disk is free: no space left on device: make room there") {
		t.Errorf("a copy that does not fit: %v", err)
	}
	put(t, dir, "f", "small")
	got, err := c.Capture(t.Context()) // with a gigabyte of holes
	if err != nil || got.Bytes != 1<<30+5 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := got.Discard(); err != nil {
		t.Error(err)
	}
}

// A restore to a full disk says so and how to fix it, and the folder stays unchanged.
func TestRestore_ExplainsAFullDisk(t *testing.T) {
	lane.Component(t, "host")
	b := openFolder(t, fast.Dir(t))
	big := filepath.Join(t.TempDir(), "c")
	put(t, big, "f", strings.Repeat("x", 2<<20))
	s := checkpoint.Open(b, "jobs/j1")
	publish(t, claim(t, s, 1), big, 1)
	disk := filepath.Join(t.TempDir(), "disk")
	mount(t, disk)
	dir := filepath.Join(disk, "c")
	put(t, dir, "f", "as it was")
	r, err := s.Restore(t.Context(), 0, dir)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "free space") || r.Manifest != nil || len(r.Refused) > 0 {
		t.Errorf("restored %+v, %v", r, err)
	}
	if got := read(t, disk); len(got) != 2 || !strings.HasSuffix(got["c/f"], "as it was") {
		t.Errorf("the disk holds %v", got)
	}
}

// A publish to a full store says so, nothing of the checkpoint is visible, and the previous one can be restored.
func TestPublish_ExplainsAFullStore(t *testing.T) {
	lane.Component(t, "host")
	disk := filepath.Join(t.TempDir(), "disk")
	mount(t, disk)
	s := checkpoint.Open(openFolder(t, disk), "jobs/j1")
	dir := filepath.Join(t.TempDir(), "c")
	put(t, dir, "f", "fits")
	w := claim(t, s, 1)
	m, _ := publish(t, w, dir, 1)
	put(t, dir, "f", strings.Repeat("x", 2<<20))
	_, _, err := w.Publish(t.Context(), dir, format.Meta{})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), disk) || !strings.Contains(err.Error(), "free space") {
		t.Errorf("publish: %v", err)
	}
	if name, _, refused := restored(t, s); name != m.Name || len(refused) > 0 {
		t.Errorf("restored %q, refused %v", name, refused)
	}
}

package engines

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/cli/command"
	"scrimp/internal/server/disk"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// Doctor reports the space of each kind of data, and what no longer fits.
func TestDoctor_ReportsDiskUse(t *testing.T) {
	t.Parallel()
	data, elsewhere := t.TempDir(), t.TempDir()
	for name, mib := range map[string]int{"scrimp.db": 2, "view.db-wal": 1, "logs/a.1.log": 4, "folders/objects/ab/x": 5,
		"blobs/jobs/a/outputs/a/000001": 1, "blobs/jobs/a/objects/kept/x": 5, "blobs/jobs/a/objects/000001-000001/y": 7,
		"market/machines/i-1/console.log": 8, "engines/rack/x": 1, "reserve": 16} {
		path := filepath.Join(data, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, make([]byte, mib<<20), 0o600))
	}
	must.Do(t, os.WriteFile(filepath.Join(elsewhere, "x"), make([]byte, 3<<20), 0o600))
	free, entries := int64(disk.LogReserve), int64(1<<20)
	room := func() (disk.Left, bool) { return disk.Left{Bytes: free, Entries: entries}, true }
	inside := filepath.Join(data, "market", "machines") // counted once
	c := diskCheck(data, room, inside, elsewhere)
	want := "512 MiB are free; " + data +
		" has database 3 MiB, logs 4 MiB, work 5 MiB, outputs 6 MiB, checkpoints 7 MiB, machines 12 MiB, reserve 16 MiB"
	if !c.OK || c.Text != want || len(c.Use) != 8 {
		t.Errorf("%+v\nwant %q", c, want)
	}
	for n, want := range map[int64]string{disk.LogReserve - 1: "wait on machines", disk.EndReserve - 1: "no job is taken"} {
		free = n
		if c := diskCheck(data, room); c.OK || !strings.Contains(c.Text, want) || !strings.Contains(c.Text, "scrimp gc") {
			t.Errorf("%d bytes free: %+v", n, c)
		}
	}
	free = 1 << 40
	for n, want := range map[int64]string{disk.LogEntries - 1: "wait on machines", disk.EndEntries - 1: "no job is taken"} {
		entries = n
		if c := diskCheck(data, room); c.OK || !strings.Contains(c.Text, want) || !strings.Contains(c.Text, "inodes") {
			t.Errorf("%d files can be made: %+v", n, c)
		}
	}
}

// A folder on a full disk is not writable, although an empty file fits.
func TestDoctor_FindsFullDisk(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	a := &app{&command.App{Data: dir}}
	if c := a.folderCheck(); !c.OK {
		t.Errorf("with room: %+v", c)
	}
	_ = os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 2<<20), 0o600) // fills the disk as far as possible
	if c := a.folderCheck(); c.OK || !strings.Contains(c.Text, "full") {
		t.Errorf("without: %+v", c)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

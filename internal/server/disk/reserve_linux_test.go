package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"scrimp/internal/test/must"
)

// small mounts a folder of the given size for the test.
func small(t *testing.T, size string) string {
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

// The reserve is real space: it survives a full disk, and is free after Give.
func TestReserve_FreesSpaceOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := small(t, "150m")
	r := &Reserve{Dir: dir, Room: Of(dir)}
	if held, err := r.Take(); err != nil || !held {
		t.Fatalf("held %v, %v", held, err)
	}
	f, err := os.Create(filepath.Join(dir, "filler"))
	must.Do(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	note := filepath.Join(dir, "note")
	if err := os.WriteFile(note, make([]byte, 1<<20), 0o600); err == nil {
		t.Error("there is room on a full disk")
	}
	for _, want := range []bool{true, false} {
		if gave, err := r.Give(); err != nil || gave != want {
			t.Errorf("gave %v, %v", gave, err)
		}
	}
	if err := os.WriteFile(note, make([]byte, reserveSize-1<<20), 0o600); err != nil {
		t.Errorf("with the reserve given up: %v", err)
	}
	r.Room = Of(dir) // with a fresh measurement
	if held, err := r.Take(); err != nil || held {
		t.Errorf("on a full disk it is held: %v, %v", held, err)
	}
	must.Do(t, errors.Join(f.Close(), os.Remove(f.Name())))
	r.Room = Of(dir)
	if held, err := r.Take(); err != nil || !held {
		t.Errorf("with room again: held %v, %v", held, err)
	}
}

// A caller that checks before each file never uses up the file system's last inodes, however fast it is.
func TestRoom_ReservesTheLastInodes(t *testing.T) {
	t.Parallel()
	dir := small(t, "150m,nr_inodes=6000")
	room := Of(dir)
	made := 0
	for r := Room(func() (Left, bool) { l, ok := room(); l.Bytes += LogReserve; return l, ok }); r.Full(0) == nil; made++ {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(made)), nil, 0o600); err != nil {
			t.Fatalf("file %d: %v", made, err)
		}
	}
	if most := 6000 - LogEntries; made > most+askedAfter || made < most-10 {
		t.Errorf("%d files are made, and about %d may be", made, most)
	}
}

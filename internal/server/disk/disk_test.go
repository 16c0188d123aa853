package disk

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/test/must"
)

func TestRoom_ReservesSpaceForTheLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left  Left
		wants int64
		known bool
		full  string
	}{
		{Free(LogReserve), 0, true, ""}, {Free(LogReserve - 1), 0, true, "511 MiB are free, and 512 MiB"},
		{Free(LogReserve + 10), 10, true, ""}, {Free(LogReserve + 10), 11, true, "512 MiB are free, and 512 MiB"},
		{Free(LogReserve), -1, true, ""}, {Free(0), 1, false, ""},
		{Left{1 << 40, LogEntries}, 1, true, ""}, {Left{1 << 40, LogEntries - 1}, 1, true, "4095 more files (inodes), and 4096"},
	} {
		room := Room(func() (Left, bool) { return c.left, c.known })
		if err := room.Full(c.wants); (err != nil) != (c.full != "") || err != nil && !strings.Contains(err.Error(), c.full) {
			t.Errorf("%d free, %d wanted: %v", c.left, c.wants, err)
		}
		if err := room.Crowded(); err != nil {
			t.Errorf("%d free: no job is taken: %v", c.left, err)
		}
	}
	for _, left := range []Left{Free(EndReserve - 1), {1 << 40, EndEntries - 1}} {
		if err := Room(func() (Left, bool) { return left, true }).Crowded(); err == nil {
			t.Errorf("%d free: a job is taken", left)
		}
	}
	if left, ok := Of(t.TempDir())(); !ok || left.Bytes <= 0 || left.Entries <= 0 {
		t.Errorf("an existing folder has %d left, known: %v", left, ok)
	}
	if left := leftOf(&syscall.Statfs_t{Bavail: 3, Bsize: 4096}); left != Free(3*4096) {
		t.Errorf("a file system without a number of entries has %d left", left)
	}
	if left := leftOf(&syscall.Statfs_t{Bavail: 3, Bsize: 4096, Files: 9, Ffree: 2}); left != (Left{3 * 4096, 2}) {
		t.Errorf("a file system with 2 entries left has %d left", left)
	}
}

// Even the smallest file takes a block, and so does a folder.
func TestUsed_CountsWholeBlocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, n := range map[string]int{"a": 1, "b": Block, "c": Block + 1, "d": 0} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, name, "f"), make([]byte, n), 0o600))
	}
	if used := Used(dir); used != (4+1+1+2+1)*Block { // four folders; an empty file has an entry, too
		t.Errorf("%d blocks are used", used/Block)
	}
	if used := Used(filepath.Join(dir, "none")); used != 0 {
		t.Errorf("a missing folder uses %d bytes", used)
	}
}

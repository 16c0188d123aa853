// Package fast provides folders in memory for tests.
package fast

import (
	"os"
	"syscall"
	"testing"
)

// room is the free memory that such a folder needs, so that other programs keep enough.
const room = 1 << 30

// Dir returns a new folder in memory, where syncs cost nothing, or on the disk if the system has no such memory. It
// is removed when the test ends. Its path is short enough for a socket.
func Dir(t testing.TB) string {
	t.Helper()
	parent := "/dev/shm"
	var disk syscall.Statfs_t
	if err := syscall.Statfs(parent, &disk); err != nil || disk.Bavail*uint64(disk.Bsize) < room {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "st")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

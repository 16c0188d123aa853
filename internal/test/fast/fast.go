// Package fast gives tests folders in memory. It is for tests only.
package fast

import (
	"os"
	"syscall"
	"testing"
)

// room is how much memory must be free for a folder there: less is left to whoever else uses it.
const room = 1 << 30

// Dir returns a new folder in memory, where a sync costs nothing, and one on the disk where the system has no such
// memory. It is removed when the test ends. Its path is short enough for a socket.
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

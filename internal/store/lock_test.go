package store

import (
	"syscall"
	"testing"
)

// A folder that is closed can be opened again at once, also while another process has the lock's file from this one, as a
// child has until it runs its own program.
func TestAFolderThatIsClosedIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(s.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(child) }()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

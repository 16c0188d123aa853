package sqlite

import (
	"syscall"
	"testing"
)

// A closed folder can be opened again at once, even while another process has inherited the lock file, as a child
// does until it executes its program.
func TestClose_FreesTheFolderAtOnce(t *testing.T) {
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

package pack

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/test/must"
)

// The copy of a work folder uses no file of it: rules of scrimp storage about unused files still match.
func TestPack_LeavesTheTimeOfLastUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "run.log")
	old := time.Now().Add(-400 * 24 * time.Hour).Truncate(time.Second)
	must.Do(t, errors.Join(os.WriteFile(name, []byte("line\n"), 0o600), os.Chtimes(name, old, old), Pack(io.Discard, dir, "")))
	info, err := os.Stat(name)
	must.Do(t, err)
	if at := time.Unix(info.Sys().(*syscall.Stat_t).Atim.Unix()); !at.Equal(old) {
		t.Errorf("the file was last used at %v, want %v", at, old)
	}
}

package pack

import (
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/test/must"
)

// Holds reports files that a machine would find in the folder.
func TestHolds_ReportsFilesInAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"full/a/state", "left/state", "aside/.state", "aside/state.tmp", "out/left/state"} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("1"), 0o600))
	}
	for _, e := range []error{os.Mkdir(filepath.Join(dir, "empty"), 0o700), os.WriteFile(filepath.Join(dir, ".scrimpignore"), []byte("left/\n"), 0o600)} {
		if e != nil {
			t.Fatal(e)
		}
	}
	for name, want := range map[string]bool{"full": true, "full/a": true, "left": false, "aside": false, "empty": false, "none": false,
		"out": false, "out/left": false, "../x": false, ".": true} {
		if got := Holds(dir, name); got != want {
			t.Errorf("%s holds files: %v", name, got)
		}
	}
}

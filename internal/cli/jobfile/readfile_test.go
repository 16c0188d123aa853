package jobfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

func TestReadFile_RefusesFoldersAndLargeFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "job.yaml")
	must.Do(t, os.WriteFile(file, []byte("name: a\n"), 0o600))
	if text, err := ReadFile(file, 8); err != nil || string(text) != "name: a\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ReadFile(file, 7); err == nil || !strings.Contains(err.Error(), "has more than 7") {
		t.Errorf("a byte too many: %v", err)
	}
	must.Do(t, os.Truncate(file, 1<<40)) // sparse
	if _, err := ReadFile(file, 1<<20); err == nil || !strings.Contains(err.Error(), "has more than 1MiB") {
		t.Errorf("a sparse file: %v", err)
	}
	if _, err := ReadFile(dir, 8); err == nil || !strings.Contains(err.Error(), "is a folder, not a file") {
		t.Errorf("a folder: %v", err)
	}
}

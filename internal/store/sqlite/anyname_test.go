package sqlite

import (
	"os"
	"path/filepath"
	"testing"
)

// A data folder may have any name that the file system accepts.
func TestOpen_TakesAFolderOfAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a#1", "a?b=c", "a%20b", "a b", "ä+&;", "file:x", "-"} {
		dir := filepath.Join(t.TempDir(), name)
		for range 2 { // the second time the folder exists
			s, err := Open(dir)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := s.Close(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, databaseName)); err != nil {
			t.Errorf("%s: its database lies elsewhere: %v", name, err)
		}
	}
}

package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/test/fast"
)

// Once the store is closed, no file holds a value that PutMeta has replaced.
func TestPutMeta_ErasesTheReplacedValue(t *testing.T) {
	dir := fast.Dir(t)
	for _, value := range []string{`{"name":"zephyrine"}`, ""} {
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 500 {
			if err := s.PutMeta(t.Context(), fmt.Sprint("person/", n), value); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if b, err := os.ReadFile(name); err != nil || bytes.Contains(b, []byte("zephyrine")) {
			t.Errorf("%s still holds it, or is not read: %v", name, err)
		}
	}
}

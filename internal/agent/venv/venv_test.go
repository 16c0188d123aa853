package venv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// usesPython bounds the time for a set-up that names thousands of files: beyond the bound it assumes Python.
func TestUsesPython_BoundsBytesRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, make([]byte, maxScript), 0o600); err != nil {
		t.Fatal(err)
	}
	words := ""
	for i := range 40 {
		name := fmt.Sprintf("f%02d", i)
		if err := os.Link(text, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		words += name + " " + name + " "
	}
	uses := func(setup string) bool {
		return Needed(setup, dir)
	}
	if uses(strings.Repeat("f01 ", 10_000)) || !uses(words) {
		t.Errorf("one file, named often: %v; many: %v", uses(strings.Repeat("f01 ", 10_000)), uses(words))
	}
}

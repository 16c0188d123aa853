package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/server/workdir/pack"
)

// folderOf returns a work folder as commands send it.
func folderOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	if err := pack.PackAll(&b, dir); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

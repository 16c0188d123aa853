package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/server/workdir/pack"
	"scrimp/internal/test/must"
)

// folderOf returns a work folder as commands send it.
func folderOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	var b strings.Builder
	must.Do(t, pack.PackAll(&b, dir))
	return b.String()
}

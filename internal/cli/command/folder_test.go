package command

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/test/must"
)

// Fetched files replace files with the same path and nothing else. A failed fetch leaves nothing, and writes do not
// follow links out of the folder.
func TestFillFolder_ReplacesOnlySamePaths(t *testing.T) {
	top := t.TempDir()
	to, outside := filepath.Join(top, "to"), filepath.Join(top, "outside")
	write := func(path, text string) {
		t.Helper()
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	fill := func(files map[string]string) error {
		return FillFolder(to, func(dir string) error {
			for name, text := range files {
				write(filepath.Join(dir, name), text)
			}
			return nil
		})
	}
	check := func(want map[string]string) {
		t.Helper()
		n := 0
		_ = filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			n++
			rel, _ := filepath.Rel(to, path)
			if text, _ := os.ReadFile(path); string(text) != want[rel] {
				t.Errorf("%s holds %q, want %q", rel, text, want[rel])
			}
			return nil
		})
		if n != len(want) {
			t.Errorf("there are %d files, want %d", n, len(want))
		}
	}
	failed := errors.New("the network")
	if err := FillFolder(to, func(dir string) error { write(filepath.Join(dir, "x"), "half"); return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if _, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("a fetch that failed leaves a folder: %v", err)
	}
	if err := fill(map[string]string{"out/a": "1", "out/b/c": "2", "d": "3"}); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(to, "out", "mine"), "4")
	if err := fill(map[string]string{"out/a": "5", "out/b/e": "6", "d/f": "7"}); err != nil { // d was a file
		t.Fatal(err)
	}
	want := map[string]string{"out/a": "5", "out/b/c": "2", "out/b/e": "6", "out/mine": "4", "d/f": "7"}
	check(want)
	if err := fill(map[string]string{"out": "a file where a folder is"}); err == nil {
		t.Error("a folder gave way to a file")
	}
	check(want)
	must.Do(t, errors.Join(os.Mkdir(outside, 0o700), os.Symlink(outside, filepath.Join(to, "link"))))
	must.Do(t, fill(map[string]string{"link/g": "8"}))
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("it wrote outside: %v", left)
	}
}

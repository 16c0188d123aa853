package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

// Settings rereads a linked file after a change, and no command replaces it.
func TestLinkSettings(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "given.yaml")
	if err := LinkSettings(dir, file); err == nil {
		t.Error("a file that is not there is taken")
	}
	write := func(path, name string) {
		must.Do(t, os.WriteFile(path, []byte("engines: [{name: "+name+", kind: local}]\n"), 0o400))
	}
	is := func(want string) {
		t.Helper()
		if list, err := Settings(dir); err != nil || len(list) != 1 || list[0].Name != want {
			t.Errorf("engines %+v, %v, want %s", list, err, want)
		}
	}
	write(file, "one")
	for range 2 {
		must.Do(t, LinkSettings(dir, file))
		is("one")
	}
	if err := AddSetting(dir, &Setting{Name: "two", Kind: "local"}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("an engine is added to a file elsewhere: %v", err)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	write(other, "three")
	if err := LinkSettings(dir, other); err != nil {
		t.Fatal(err)
	}
	is("three")
	must.Do(t, os.Remove(other))
	if list, err := Settings(dir); err == nil {
		t.Errorf("the file is gone, and the engines are %+v", list)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
	own := t.TempDir()
	write(filepath.Join(own, SettingsName), "own")
	if err := LinkSettings(own, file); err == nil || !strings.Contains(err.Error(), "--engines") {
		t.Errorf("engines of the folder's own are replaced: %v", err)
	}
}

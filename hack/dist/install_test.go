package main

import (
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/test/must"
)

func TestInstall_ReplacesTheProgramAndWritesItsManual(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(t.TempDir(), "built")
	for _, version := range []string{"the first build", "the second build"} {
		must.Do(t, os.WriteFile(program, []byte(version), 0o600))
		must.Do(t, (release{Version: "1.2.3"}).install(folder, program))
		installed := filepath.Join(folder, "bin", "scrimp")
		body, err := os.ReadFile(installed)
		if err != nil || string(body) != version {
			t.Errorf("installed %q, %v, want %q", body, err, version)
		}
		if s, err := os.Stat(installed); err != nil || s.Mode().Perm() != 0o755 {
			t.Errorf("installed as %v, %v, want a program that everybody may run", s, err)
		}
	}
	for _, name := range []string{"share/man/man1/scrimp-run.1", "share/bash-completion/completions/scrimp"} {
		if s, err := os.Stat(filepath.Join(folder, name)); err != nil || s.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (release{}).install(folder, filepath.Join(folder, "absent")); err == nil {
		t.Error("installing a program that does not exist succeeds")
	}
}

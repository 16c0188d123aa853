package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/agent/place"
	"scrimp/internal/wire/api"
)

// An agent takes another program only from whom it can tell that it is its server: over plain HTTP whoever is between
// sends both the program and the hash that it is held against.
func TestAnAgentTakesNoProgramThatSomebodyBetweenMayHaveChanged(t *testing.T) {
	t.Parallel()
	for server, takes := range map[string]bool{
		"https://scrimp.example:7077": true, "unix:///run/server.sock": true, "http://127.0.0.1:7077": true,
		"http://[::1]:7077": true, "http://localhost:7077": true, "http://10.0.0.5:7077": false, "http://scrimp.internal": false,
		"http://127.0.0.1.example.com": false, "http://localhost.example.com": false, "%": false,
	} {
		if unaltered(server) != takes {
			t.Errorf("%s: it takes a program: %v", server, !takes)
		}
	}
	d := &daemon{Config: Config{Server: "http://10.0.0.5:7077", MachineDir: t.TempDir()}} // it would ask through machine, which is nil
	if err := d.update(t.Context(), strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("update: %v", err)
	}
}

// Set-up commands that name files by the thousand are not looked through for minutes: beyond a bound the environment is made.
func TestASetupThatNamesManyFilesIsNotReadWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, make([]byte, mostScript), 0o600); err != nil {
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
		return (&attempt{a: api.Assignment{Setup: setup}, folders: place.Folders{Work: dir}}).usesPython()
	}
	if uses(strings.Repeat("f01 ", 10_000)) || !uses(words) {
		t.Errorf("one file, named often: %v; many: %v", uses(strings.Repeat("f01 ", 10_000)), uses(words))
	}
}

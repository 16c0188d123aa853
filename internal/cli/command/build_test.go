package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"scrimp/internal/test/must"
)

// The build differs between programs with different code, with and without the linker's note, and not between copies.
func TestBuild_IdentifiesTheCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := func(name, text string, flags ...string) string {
		t.Helper()
		source, exe := filepath.Join(dir, "main.go"), filepath.Join(dir, name)
		must.Do(t, os.WriteFile(source, []byte("package main\nfunc main() { println("+text+") }\n"), 0o600))
		out, err := exec.Command("go", append(append([]string{"build"}, flags...), "-o", exe, source)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return buildOf(exe)
	}
	one, two := program("one", `"a"`), program("two", `"b"`)
	bare, other := program("bare", `"a"`, "-ldflags=-buildid="), program("other", `"b"`, "-ldflags=-buildid=")
	if one == two || bare == other || len(one) != 16 || len(bare) != 16 {
		t.Errorf("builds %s and %s, without a note %s and %s", one, two, bare, other)
	}
	text, err := os.ReadFile(filepath.Join(dir, "one"))
	must.Do(t, err)
	must.Do(t, os.WriteFile(filepath.Join(dir, "copy"), text, 0o600))
	if got := buildOf(filepath.Join(dir, "copy")); got != one {
		t.Errorf("a copy has build %s, and the program %s", got, one)
	}
	if got := buildOf(filepath.Join(dir, "none")); got != "unknown" {
		t.Errorf("no program has build %s", got)
	}
}

// Package python runs the tests of the Python helper, so that the tests of the
// whole house cover it. It has no Go code of its own.
package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"scrimp/internal/test/lane"
)

// python returns an interpreter: Debian's own before another one on the PATH,
// as that is where python3-torch is.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("python3 is not installed")
	return ""
}

func TestPythonHelper(t *testing.T) {
	lane.Component(t, "python")
	for _, pattern := range []string{"scrimp/*.py", "tests/*.py"} { // go test's cache looks at what the test itself has read
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) < 3 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			if _, err := os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := exec.Command(python(t), "-W", "error", "-m", "unittest", "discover", "-v", "-s", "tests", "-t", ".")
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

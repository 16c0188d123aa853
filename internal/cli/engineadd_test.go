package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If a cluster does not answer, the engine is added all the same, and the output says how to try again with this --data.
func TestEngineAdd_SaysHowToTryAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, errs, code := call(t, dir, "engine", "add", "hpc", "--kind", "slurm", "--with",
		"{rest: {url: 'unix://"+dir+"/none'}, partitions: [{name: a, rate: 1}]}")
	said := strings.Join(strings.Fields(out+errs), " ")
	if want := "Try again with: scrimp --data " + dir + " engine test hpc"; code != 1 || !strings.Contains(said, want) {
		t.Errorf("it ends with %d, want 1 and %q:\n%s", code, want, out+errs)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "engines.yaml")); err != nil || !strings.Contains(string(text), "hpc") {
		t.Errorf("the engine is not added: %v\n%s", err, text)
	}
}

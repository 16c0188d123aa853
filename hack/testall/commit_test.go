package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"scrimp/internal/test/must"
)

// The commit lane passes with and without each optional component because it cannot find any of them.
func TestToolFolder_HasNoOptionalComponent(t *testing.T) {
	folder, err := toolFolder(t.TempDir())
	must.Do(t, err)
	t.Setenv("PATH", folder)
	for _, name := range []string{"python3", "python", "git", "ssh", "sshd", "sinfo", "sbatch", "slurmctld", "psql", "postgres",
		"initdb", "kubectl", "kubelet", "etcd", "containerd", "chromium", "curl", "pip", "npm", "node", "torchrun"} {
		if path, err := exec.LookPath(name); err == nil {
			t.Errorf("the commit lane finds %s as %s", name, path)
		}
	}
	for _, name := range []string{"go", "sh", "sleep"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Errorf("the commit lane does not find %s", name)
		}
	}
}

func TestPlace_NamesWhatTestsLeaveBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	root := t.TempDir()
	p, err := newPlace(root)
	must.Do(t, err)
	if again, err := newPlace(root); err != nil || again != p {
		t.Errorf("the folders of the next run are %v, %v, want the same: Go's test cache compares the environment", again, err)
	}
	for _, dir := range []string{p.tmp, p.home} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "forgotten"), nil, 0o600))
	}
	want := []string{filepath.Join(p.tmp, "forgotten"), filepath.Join(p.home, "forgotten")}
	if got := p.left(); !slices.Equal(got, want) {
		t.Errorf("left behind: %v, want %v", got, want)
	}
	if _, err := os.Stat(p.tmp); err == nil {
		t.Error("the folder is still there after the run")
	}
}

func TestFlickered_RunsAFewFailedTestsOnceMore(t *testing.T) {
	const broken = "func TestBroken%d(t *testing.T) { t.Fatal(\"always\") }\n"
	for _, c := range []struct {
		broken, failed, flaky int
	}{{0, 0, 1}, {1, 2, 0}, {2, 3, 0}} { // a test that passes the second time counts only if its whole package passes
		text := failsOnce
		for i := range c.broken {
			text += fmt.Sprintf(broken, i)
		}
		_, env := module(t, text)
		r, err := goTest(t.Context(), env, append(slices.Clip(commitFlags), ".")...)
		must.Do(t, err)
		must.Do(t, flickered(t.Context(), env, r))
		rec, err := openRecord()
		must.Do(t, err)
		if len(r.failed()) != c.failed || len(rec.Flaky) != c.flaky {
			t.Errorf("%d broken tests: failed %v, flaky %v; want %d and %d", c.broken, r.failed(), rec.Flaky, c.failed, c.flaky)
		}
	}
}

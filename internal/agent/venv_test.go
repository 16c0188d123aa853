package agent

import (
	"archive/zip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// needsPython returns the environment of a machine with Python, with the user's home folder in home.
func needsPython(t *testing.T, home string) []string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(path, "-c", "import venv, pip").Run()
	}
	if err != nil {
		t.Skip("python3 with venv and pip is not installed")
	}
	out, err := exec.Command(path, "-c", "import sys; print(sys.executable)").Output() // resolves a shim that needs a home folder
	if err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + filepath.Dir(strings.TrimSpace(string(out))) + ":/usr/bin:/bin", "HOME=" + home}
}

// wheel writes a Python package whose command prints where it runs.
func wheel(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, text := range map[string]string{
		"where.py":                           "import sys\ndef main(): print('command in', sys.prefix)\n",
		"where-1.dist-info/METADATA":         "Metadata-Version: 2.1\nName: where\nVersion: 1\n",
		"where-1.dist-info/WHEEL":            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"where-1.dist-info/RECORD":           "where.py,,\nwhere-1.dist-info/METADATA,,\nwhere-1.dist-info/WHEEL,,\nwhere-1.dist-info/RECORD,,\nwhere-1.dist-info/entry_points.txt,,\n",
		"where-1.dist-info/entry_points.txt": "[console_scripts]\nwhereis-python = where:main\n",
	} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Packages that a set-up installs go into the task's own environment, even with --user and from a
// script, and the program finds them there. The user's folders stay unchanged, and the next task
// finds the packages without installing.
func TestVenv_IsolatesInstalledPackages(t *testing.T) {
	lane.Component(t, "python")
	t.Parallel()
	for name, setup := range map[string]string{
		"pip": "pip install --no-index ./where-1-py3-none-any.whl", "a script": "sh deps.sh",
		"for the user": "python3 -m pip install --user --no-index ./where-1-py3-none-any.whl",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			job := func(a *api.Assignment) {
				a.Setup = setup
				a.Command = `python3 -c 'import where, sys; print("program in", sys.prefix)'; whereis-python; echo "$VIRTUAL_ENV"`
			}
			r := inLine(t, setUp(t, "job-1", job), setUp(t, "job-2", job))
			r.config.Environ = needsPython(t, home)
			work := r.upload(t)
			wheel(t, filepath.Join(work, "where-1-py3-none-any.whl"))
			write(t, filepath.Join(work, "deps.sh"), "pip3 install --no-index ./where-1-py3-none-any.whl\n")
			logs := r.played(t)
			if len(logs) != 2 {
				t.Fatalf("the tasks say %q", logs)
			}
			venv := filepath.Join(r.config.MachineDir, "slots", "1", "venv")
			want := "program in " + venv + "\ncommand in " + venv + "\n" + venv + "\n"
			if !strings.HasPrefix(logs[0], "scrimp: set-up: packages go into a virtual environment of /") || !strings.HasSuffix(logs[0], want) {
				t.Errorf("the first says %q", logs[0])
			}
			if rest, ok := skipped(logs[1]); !ok || rest != want {
				t.Errorf("the second says %q", logs[1])
			}
			if left, err := filepath.Glob(filepath.Join(home, ".local", "lib", "*", "site-packages", "*")); err != nil || len(left) > 0 {
				t.Errorf("the user's own folder has %v, %v", left, err)
			}
		})
	}
}

// If an environment was active where the job was submitted, the set-up does not install into it,
// and the program finds its packages.
func TestVenv_FindsPackagesOfActiveEnvironment(t *testing.T) {
	lane.Component(t, "python")
	t.Parallel()
	r := inLine(t, setUp(t, "job-1", func(a *api.Assignment) {
		a.Setup = "python3 -c 'import mine'"
		a.Command = "python3 -c 'import mine, sys; print(mine.__file__, sys.prefix)'; mine-command"
	}))
	env := needsPython(t, t.TempDir())
	active := filepath.Join(t.TempDir(), "active")
	venv := exec.Command("sh", "-c", `python3 -m venv --without-pip "$0" && cd "$0"/lib/python*/site-packages && echo "def main(): print('main')" > mine.py && `+
		`mkdir pip && touch pip/__init__.py && mkdir mine-1.dist-info && printf 'Name: mine\nVersion: 1\n' > mine-1.dist-info/METADATA && `+
		`printf '[console_scripts]\nmine-command = mine:main\n' > mine-1.dist-info/entry_points.txt`, active)
	venv.Env = env
	if out, err := venv.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.server.assignment.Shell = map[string]string{"VIRTUAL_ENV": active,
		"PATH": filepath.Join(active, "bin") + ":" + strings.TrimPrefix(env[0], "PATH=")}
	r.config.Environ = env
	r.upload(t)
	logs := r.played(t)
	of := filepath.Join(r.config.MachineDir, "slots", "1", "venv")
	if len(logs) != 1 || !strings.Contains(logs[0], active+"/lib") || !strings.HasSuffix(logs[0], " "+of+"\nmain\n") {
		t.Errorf("it says %q", logs)
	}
}

// A set-up without Python gets no environment. Where none can be made, pip installs nothing.
func TestVenv_IsMadeOnlyIfNeededAndPossible(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setup, want string }{
		"no Python": {"echo pipeline python-like", "pipeline python-like\n|/none|"},
		"no python3 on PATH": {"command -v python3 pip; echo pip", "no python3 is on PATH\n" +
			"scrimp: set-up: no virtual environment was made, for the reason above: pip installs nothing outside one here\npip\n|/none|1"},
	} {
		r := inLine(t, setUp(t, "job-1", func(a *api.Assignment) {
			a.Setup, a.Command = c.setup, `echo "|$VIRTUAL_ENV|$PIP_REQUIRE_VIRTUALENV"`
		}))
		r.config.Environ = []string{"PATH=" + tools(t), "VIRTUAL_ENV=/none"}
		r.upload(t)
		if logs := r.played(t); len(logs) != 1 || strings.TrimSpace(logs[0]) != c.want {
			t.Errorf("%s: it says %q", name, logs)
		}
	}
}

// tools returns a folder of programs without Python.
func tools(t *testing.T) string {
	dir := t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(dir, "sh")); err != nil {
		t.Fatal(err)
	}
	return dir
}

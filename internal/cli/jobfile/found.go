package jobfile

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"scrimp/internal/job/check"
)

// foundPatience bounds how long a Python may take to describe itself.
const foundPatience = 5 * time.Second

// Found returns what the program of a command would find in this shell; command may be empty.
func Found(ctx context.Context, command string, far bool) *check.Found {
	if far {
		return &check.Found{Elsewhere: true}
	}
	f := &check.Found{Environment: cmp.Or(os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX")),
		Path: filepath.SplitList(os.Getenv("PATH"))}
	ctx, cancel := context.WithTimeout(ctx, foundPatience)
	defer cancel()
	if at, err := exec.LookPath("python3"); err == nil {
		f.Python = at
		say := exec.CommandContext(ctx, at, "-c", "import sys; print(sys.executable, '(%d.%d.%d)' % sys.version_info[:3])")
		if out, err := say.Output(); err == nil {
			f.Python = strings.TrimSpace(string(out)) // the interpreter behind a shim
		}
	}
	if name := programOf(command); name != "" {
		err := exec.CommandContext(ctx, "/bin/sh", "-c", `command -v "$0"`, name).Run()
		if _, not := err.(*exec.ExitError); not && ctx.Err() == nil { //nolint:errorlint // as Run returns it
			f.Missing = name
		}
	}
	return f
}

var (
	assignment  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	programForm = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)
)

// programOf returns the first program that a command line starts, or "" if that is unclear or it is a file of the work
// folder.
func programOf(command string) string {
	for _, word := range strings.Fields(command) {
		switch {
		case word == "exec" || assignment.MatchString(word):
		case programForm.MatchString(word):
			return word
		default:
			return ""
		}
	}
	return ""
}

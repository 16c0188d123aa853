package attempt

import (
	"bytes"
	"context"
	_ "embed" // of the program that makes an environment
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"scrimp/internal/agent/place"
	"scrimp/internal/agent/program"
)

// pythonTool matches a command that installs Python packages, or that may run an installer.
var pythonTool = regexp.MustCompile(`(^|[^\w.-])(pip[0-9.]*|python[0-9.]*|uv|poetry|pdm|pipenv)($|[^\w.-])`)

// namesPython reports whether text matches pythonTool. It searches for the plain names first, which
// is much faster than the expression.
func namesPython(text []byte) bool {
	for _, name := range []string{"pip", "python", "uv", "poetry", "pdm"} {
		if bytes.Contains(text, []byte(name)) {
			return pythonTool.Match(text)
		}
	}
	return false
}

// maxScript is the size in bytes of the largest script that usesPython reads; maxScripts bounds the total.
const (
	maxScript  = 1 << 20
	maxScripts = 16 << 20
)

//go:embed makevenv.py
var venvProgram string

// venv returns the folder of the task's virtual environment. A set-up that may install packages
// gets one, so it never changes the Python of a user or of the machine.
func (g *Attempt) venv() string { return filepath.Join(g.Folders.Top, "venv") }

// usesPython reports whether the set-up names Python or a Python installer, directly or in a file
// of the work folder that it names.
func (g *Attempt) usesPython() bool {
	if namesPython([]byte(g.Task.Setup)) {
		return true
	}
	root, err := os.OpenRoot(g.Folders.Work)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	words := strings.FieldsFunc(g.Task.Setup, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>'\"`", r) })
	slices.Sort(words)
	left := int64(maxScripts)
	for _, word := range slices.Compact(words) {
		if word == "make" {
			word = "Makefile"
		}
		name := filepath.Clean(word)
		info, err := root.Stat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxScript {
			continue
		}
		if left -= info.Size(); left < 0 {
			return true // an unnecessary environment costs only a second
		}
		if b, err := root.ReadFile(name); err == nil && namesPython(b) {
			return true
		}
	}
	return false
}

// makeVenv makes the task's virtual environment with the Python that the set-up would find. A
// machine without Python has nothing to protect.
func (g *Attempt) makeVenv(ctx context.Context, env []string, output *os.File) error {
	const find = `python=$(command -v python3 || command -v python) || { echo "no python3 is on PATH" >&2; exit 1; }
exec "$python" -c "$0" "$1"`
	e, err := g.runOnce(ctx, []string{"/bin/sh", "-c", find, venvProgram, g.venv()}, env, output)
	if err != nil || e.Status == 0 {
		return err
	}
	if err := errors.Join(place.RemoveAll(g.venv()), os.Mkdir(g.venv(), 0o700)); err != nil {
		return err
	}
	_, err = io.WriteString(output, "scrimp: set-up: no virtual environment was made, for the reason above: pip installs "+
		"nothing outside of one here\n")
	return err
}

// inVenv returns env with the task's virtual environment first on PATH, if it exists. Packages
// installed with pip's --user go there too.
func (g *Attempt) inVenv(env []string) []string {
	dir := g.venv()
	if _, err := os.Lstat(dir); err != nil {
		return env
	}
	env = slices.Clone(env)
	set := func(name, value string) {
		env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		env = append(env, name+"="+value)
	}
	if _, err := os.Lstat(filepath.Join(dir, "bin", "python3")); err != nil {
		set("PIP_REQUIRE_VIRTUALENV", "1")
		return env
	}
	path := filepath.Join(dir, "bin")
	for _, kv := range env {
		if rest, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = fmt.Sprintf("%s:%s", path, rest)
		}
	}
	set("PATH", path)
	set("VIRTUAL_ENV", dir)
	set("PYTHONUSERBASE", dir)
	return env
}

// runOnce runs a command as the task's user and waits for it to end.
func (g *Attempt) runOnce(ctx context.Context, args, env []string, output *os.File) (e program.Exit, err error) {
	p, err := program.Start(program.Spec{Args: args, Dir: g.Folders.Work, Env: env, Output: output, User: g.User,
		Mark: "SCRIMP_PROGRAM=" + newToken()})
	if err != nil {
		return e, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	if err := p.Close(); err != nil {
		return e, err
	}
	return p.Exit(), context.Cause(ctx)
}

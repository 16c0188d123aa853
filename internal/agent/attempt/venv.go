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

// pythonTool is a command that installs packages of Python, or runs one that may.
var pythonTool = regexp.MustCompile(`(^|[^\w.-])(pip[0-9.]*|python[0-9.]*|uv|poetry|pdm|pipenv)($|[^\w.-])`)

// namesPython reports whether a text has a pythonTool. It looks for the names first, which is much faster.
func namesPython(text []byte) bool {
	for _, name := range []string{"pip", "python", "uv", "poetry", "pdm"} {
		if bytes.Contains(text, []byte(name)) {
			return pythonTool.Match(text)
		}
	}
	return false
}

// mostScript is the largest file of commands that is looked through, and mostScripts how much of all of them, in bytes.
const (
	mostScript  = 1 << 20
	mostScripts = 16 << 20
)

//go:embed makevenv.py
var venvProgram string

// venv is the virtual environment of a task whose set-up may install packages: never into the
// Python of a user or of the machine.
func (g *Attempt) venv() string { return filepath.Join(g.Folders.Top, "venv") }

// usesPython reports whether the set-up names Python or one of its installers, itself or in a
// file of the work folder that it names.
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
	left := int64(mostScripts)
	for _, word := range slices.Compact(words) {
		if word == "make" {
			word = "Makefile"
		}
		name := filepath.Clean(word)
		info, err := root.Stat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > mostScript {
			continue
		}
		if left -= info.Size(); left < 0 {
			return true // an environment that is not needed costs a second
		}
		if b, err := root.ReadFile(name); err == nil && namesPython(b) {
			return true
		}
	}
	return false
}

// makeVenv makes the task's virtual environment with the Python that the set-up would find. A
// machine without one has nothing that could be installed into.
func (g *Attempt) makeVenv(ctx context.Context, env []string, output *os.File) error {
	const find = `python=$(command -v python3 || command -v python) || { echo "no python3 is on PATH" >&2; exit 1; }
exec "$python" -c "$0" "$1"`
	e, err := g.once(ctx, []string{"/bin/sh", "-c", find, venvProgram, g.venv()}, env, output)
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

// inVenv is an environment in which the task's virtual environment comes first, where there is one.
// What is said to be installed for the user goes into it too.
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

// once runs a command of the task's user to its end.
func (g *Attempt) once(ctx context.Context, args, env []string, output *os.File) (e program.Exit, err error) {
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

// Package venv makes and uses a task's Python virtual environment, so that its set-up installs no package into the
// Python of a user or of the machine.
package venv

import (
	"bytes"
	_ "embed" // for the program that makes an environment
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// pythonTool matches a command that installs Python packages, or that may run an installer.
var pythonTool = regexp.MustCompile(`(^|[^\w.-])(pip[0-9.]*|python[0-9.]*|uv|poetry|pdm|pipenv)($|[^\w.-])`)

// namesPython reports whether text matches pythonTool. It searches for the plain names first, which is much faster than
// the expression.
func namesPython(text []byte) bool {
	for _, name := range []string{"pip", "python", "uv", "poetry", "pdm"} {
		if bytes.Contains(text, []byte(name)) {
			return pythonTool.Match(text)
		}
	}
	return false
}

// maxScript is the size in bytes of the largest script that Needed reads; maxScripts bounds the total.
const (
	maxScript  = 1 << 20
	maxScripts = 16 << 20
)

//go:embed makevenv.py
var venvProgram string

// Needed reports whether the set-up names Python or one of its installers, itself or in a
// file of the work folder that it names.
func Needed(setup, work string) bool {
	if namesPython([]byte(setup)) {
		return true
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	words := strings.FieldsFunc(setup, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>'\"`", r) })
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
			return true // an environment that is not needed costs a second
		}
		if b, err := root.ReadFile(name); err == nil && namesPython(b) {
			return true
		}
	}
	return false
}

// Command returns the command that makes the environment in folder dir, with the Python that the set-up would find.
func Command(dir string) []string {
	const find = `python=$(command -v python3 || command -v python) || { echo "no python3 is on PATH" >&2; exit 1; }
exec "$python" -c "$0" "$1"`
	return []string{"/bin/sh", "-c", find, venvProgram, dir}
}

// In returns env with the virtual environment in dir first on PATH, if it exists. Packages installed with pip's --user
// go there too.
func In(dir string, env []string) []string {
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

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/testbin"
)

// tools lists what the commit lane may find on the PATH besides Go: a POSIX shell and what every Debian has
// (packages marked essential). Python, git, ssh, Slurm and the like are not among them, so no test of the commit lane
// can come to depend on one of them without failing everywhere.
var tools = strings.Fields(`sh bash awk basename cat chmod cp cut date dd diff dirname du echo env expr false find
	grep gzip head hostname id kill ln ls mkdir mkfifo mktemp mv nice nohup od printf ps pwd readlink realpath rm rmdir
	sed seq setsid sha256sum sleep sort stat stty sync tail tar tee test timeout touch tr true truncate tty uname uniq
	wc which xargs yes`)

// A place is where the tests of a run write: a temporary folder and a home of their own, which must be empty when the
// run ends. Both have the same paths in every run, because Go's test cache compares the environment.
type place struct{ tmp, home string }

// newPlace empties and makes the folders. The path is short: a socket's path has at most 107 bytes.
func newPlace(root string) (p place, err error) {
	sum := sha256.Sum256([]byte(root))
	p.tmp = filepath.Join(os.TempDir(), "st-"+hex.EncodeToString(sum[:4]))
	p.home = p.tmp + "h"
	for _, dir := range []string{p.tmp, p.home} {
		if err := os.RemoveAll(dir); err != nil {
			return p, fmt.Errorf("empty the tests' folder: %w", err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return p, fmt.Errorf("make the tests' folder: %w", err)
		}
	}
	return p, nil
}

// left removes the folders and returns what the tests left in them, apart from the go command's own counters (go
// telemetry).
func (p place) left() (names []string) {
	_ = os.RemoveAll(filepath.Join(p.home, ".config", "go"))
	_ = os.Remove(filepath.Join(p.home, ".config")) // stays if it has more
	for _, dir := range []string{p.tmp, p.home} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, filepath.Join(dir, e.Name()))
		}
		_ = os.RemoveAll(dir)
	}
	return names
}

// goEnv returns the settings of Go that depend on the home folder, with their values, so that another home can be set.
func goEnv(ctx context.Context) (env []string, err error) {
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOENV", "GOFLAGS", "GOPROXY", "GOSUMDB", "GONOSUMDB",
		"GOTOOLCHAIN"}
	out, err := exec.CommandContext(ctx, "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	for i, value := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		env = append(env, names[i]+"="+value)
	}
	return env, nil
}

// commitEnv returns the whole environment of the commit lane. It excludes the user's own environment, and its PATH
// contains only Go and tools.
func commitEnv(ctx context.Context, root string, p place) ([]string, error) {
	env, err := goEnv(ctx)
	if err != nil {
		return nil, err
	}
	// The tests' environment has no proxy, so the modules are fetched here.
	fetch := exec.CommandContext(ctx, "go", "list", "-tags", "local", "-deps", "-test", "./...")
	if out, err := fetch.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("fetch the modules: %w\n%s", err, tail(string(out)))
	}
	path, err := toolFolder(root)
	if err != nil {
		return nil, err
	}
	env = append(env, "CGO_ENABLED=0", "PATH="+path, "HOME="+p.home, "TMPDIR="+p.tmp, "LC_ALL=C.UTF-8", "TZ=UTC",
		lane.Variable+"="+lane.Commit)
	return programs(ctx, env, testbin.Local, testbin.Trainer)
}

// laneEnv returns the environment of the other lanes: the user's own, with the lane and the programs.
func laneEnv(ctx context.Context, name string) ([]string, error) {
	env := append(os.Environ(), "CGO_ENABLED=0", lane.Variable+"="+name)
	return programs(ctx, env, testbin.Local, testbin.Full, testbin.Trainer)
}

// programs builds the programs that tests run and adds their paths to env.
func programs(ctx context.Context, env []string, list ...*testbin.Program) ([]string, error) {
	for _, p := range list {
		path, err := p.Build(ctx)
		if err != nil {
			return nil, err
		}
		env = append(env, p.Variable+"="+path)
	}
	return env, nil
}

// toolFolder creates build/path, a folder of links to Go and to the installed tools.
func toolFolder(root string) (string, error) {
	folder := filepath.Join(root, "build", "path")
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for _, name := range append([]string{"go", "gofmt"}, tools...) {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return "", err
		}
		if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// Package testbin builds the programs that tests run, each once. It is for tests and tools only.
//
// hack/testall builds them before it runs the tests and passes their paths in the environment. A path contains the
// hash of the program, so that Go's test cache never serves a result of another build:
//
//	SCRIMP_TEST_BINARY=build/bin/3f…/scrimp
//
// A test that runs by itself builds the program on first use.
package testbin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// A Program is a main package of this repository with its build tags.
type Program struct {
	Name     string // of the file
	Variable string // environment variable with the path of a built program
	Package  string
	Tags     string

	once func() (string, error)
}

// The programs that tests run.
var (
	// Local is scrimp as make demo builds it: without cloud SDKs and PostgreSQL.
	Local = newProgram("scrimp", "SCRIMP_TEST_BINARY", "scrimp/cmd/scrimp", "local")
	// Full is scrimp with all engines and stores, as make build builds it.
	Full = newProgram("scrimp", "SCRIMP_TEST_FULL_BINARY", "scrimp/cmd/scrimp", "")
	// Trainer is the example trainer of make demo.
	Trainer = newProgram("chargpt", "SCRIMP_TEST_TRAINER", "scrimp/examples/chargpt", "")
)

func newProgram(name, variable, pkg, tags string) *Program {
	p := &Program{Name: name, Variable: variable, Package: pkg, Tags: tags}
	p.once = sync.OnceValues(func() (string, error) {
		if path := os.Getenv(p.Variable); path != "" {
			return path, nil
		}
		return p.Build(context.Background())
	})
	return p
}

// Path returns the absolute path of the program, which it builds unless the environment has its path.
func (p *Program) Path(t testing.TB) string {
	t.Helper()
	path, err := p.once()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Build builds the program into build/bin/HASH of the module, where HASH is the hash of its content, and returns its
// absolute path. Two processes may build at once.
func (p *Program) Build(ctx context.Context) (path string, err error) {
	bin := filepath.Join(Root(), "build", "bin")
	if err := os.MkdirAll(bin, 0o750); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(bin, "new-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	built := filepath.Join(work, p.Name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", p.Tags, "-o", built, p.Package)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", p.Package, err, out)
	}
	hash, err := hashOf(built)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(bin, hash)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	path = filepath.Join(folder, p.Name)
	return path, os.Rename(built, path)
}

// Root returns the repository's folder, found from the working folder upwards. It panics outside the repository.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			panic("testbin: the working folder is not in the repository")
		}
		dir = filepath.Dir(dir)
	}
}

// hashOf returns the first 16 hexadecimal digits of the SHA-256 of a file.
func hashOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("hash %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

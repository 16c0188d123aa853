package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Bench is a benchmark of a package, in a tree's own tests.
type Bench struct {
	Pkg    string
	Match  string   // -bench
	Time   string   // -benchtime
	Flags  []string // defined by the package
	One    bool     // on one processor
	Borrow string   // a testdata file with the benchmark, for a tree whose package lacks it
	Func   string   // the borrowed benchmark
}

// Run runs the benchmark once in a tree and returns the figures by benchmark and unit, such as "Load/sqlite
// submit/s".
func (b Bench) Run(ctx context.Context, t *Tree) (map[string]float64, error) {
	borrow := b.Borrow
	if borrow != "" && has(filepath.Join(t.Dir, filepath.FromSlash(b.Pkg)), "func "+b.Func+"(") {
		borrow = "" // the tree has its own
	}
	exe, err := t.tests(ctx, b.Pkg, borrow)
	if err != nil {
		return nil, err
	}
	args := []string{"-test.run", "^$", "-test.bench", b.Match, "-test.benchtime", b.Time, "-test.timeout", "5h"}
	env := []string{"TMPDIR=" + t.temp}
	if b.One {
		env = append(env, "GOMAXPROCS=1")
	}
	out, used, err := timed(ctx, filepath.Join(t.Dir, filepath.FromSlash(b.Pkg)), env, exe, append(args, b.Flags...)...)
	found := parse(out)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && strings.Contains(err.Error(), "flag provided but not defined"):
		return nil, fmt.Errorf("%w: %w", errNotThere, err)
	case err != nil:
		return found, err // one of several may have failed
	case len(found) == 0:
		return nil, fmt.Errorf("%w: no benchmark %s in %s: %s", errNotThere, b.Match, b.Pkg, skipped(out))
	}
	found[processorTime] = used.Seconds()
	return found, nil
}

// processorTime is the key of the processor time of a benchmark's process, in seconds.
const processorTime = "processor s"

// has reports whether a Go file of the folder contains the text.
func has(dir, text string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, path := range files {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), text) {
			return true
		}
	}
	return false
}

// parse reads the output of benchmarks: a name, the number of runs, and values with their units.
func parse(out string) map[string]float64 {
	found := map[string]float64{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		if _, err := strconv.Atoi(f[1]); err != nil {
			continue
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i] // removes the number of processors
			}
		}
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				continue
			}
			if found[name+" "+f[i+1]] = v; f[i+1] == "ns/op" {
				found[name+" s/op"] = v / 1e9
			}
		}
	}
	return found
}

// skipped returns why a benchmark that ran reported nothing.
func skipped(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(strings.ToLower(line), "skipped") {
			return strings.TrimSpace(line)
		}
	}
	return "it is not in this tree"
}

// overlay writes the file that makes go test treat a borrowed file as one of the package.
func (t *Tree) overlay(dir, borrow string) (string, error) {
	from, err := filepath.Abs(filepath.Join("hack", "paired", "testdata", borrow))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, "paired_"+borrow): from}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(t.temp, borrow+".overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// hang is the limit of one package's tests. It only ends a test that hangs; slow tests pass.
const hang = "30m"

var commitFlags = []string{"-trimpath", "-tags", "local", "-ldflags=-s -w", "-parallel", "6", "-timeout", hang}

// mostFlaky is the highest number of failed tests that the commit lane runs once more. If more fail, the change is at
// fault.
const mostFlaky = 2

// flickered runs the packages of failed tests once more if the tests are few. It runs whole packages, because a test
// that panics hides those after it.
func flickered(ctx context.Context, env []string, r *results) error {
	failed := tops(r.failed())
	if len(failed) == 0 || len(failed) > mostFlaky {
		return nil
	}
	rec, err := openRecord()
	if err != nil {
		return err
	}
	for _, f := range failed {
		second, err := goTest(ctx, env, append(slices.Clip(commitFlags), "-count=1", f.Package)...)
		if err != nil {
			return err
		}
		r.flaky(rec, f, second, func(o outcome) bool { return o.Package == f.Package })
	}
	return nil
}

// commit runs the commit lane: gofmt and every test that needs nothing but Go. Lint vets the packages.
func commit(ctx context.Context, root string, marks []mark) error {
	if err := formatted(ctx); err != nil {
		return err
	}
	p, err := newPlace(root)
	if err != nil {
		return err
	}
	fmt.Println("building the programs that tests run ...")
	env, err := commitEnv(ctx, root, p)
	if err != nil {
		return err
	}
	fmt.Println("testing ...")
	r, err := goTest(ctx, env, append(slices.Clip(commitFlags), "-vet=off", "-p", "3", "./...")...)
	if r == nil {
		return err
	}
	if err == nil {
		err = flickered(ctx, env, r)
	}
	if left := p.left(); len(left) > 0 && err == nil {
		r.broken = append(r.broken, "the tests left behind:\n  "+strings.Join(left, "\n  "))
	}
	elsewhere(marks)
	return errors.Join(r.report(), err)
}

// elsewhere prints which tests belong to the other lanes.
func elsewhere(marks []mark) {
	n := map[string]int{}
	for _, m := range marks {
		n[m.suite]++
	}
	fmt.Printf("\nNot run here: %d tests of real components (make components) and %d that take long (make nightly).\n",
		len(marks)-n[""], n[""])
}

// formatted fails if gofmt would change a file.
func formatted(ctx context.Context) error {
	args := []string{"-l"}
	for _, dir := range []string{"client", "cmd", "deploy", "examples", "hack", "internal", "money", "sdk"} {
		if _, err := os.Stat(dir); err == nil {
			args = append(args, dir)
		}
	}
	out, err := exec.CommandContext(ctx, "gofmt", args...).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		return fmt.Errorf("gofmt would change, so run gofmt -w on:\n%s", out)
	}
	return nil
}

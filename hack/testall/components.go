package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/test/lane"
)

// components runs the suites of the component lane, one after the other: each has both processors to itself.
func components(ctx context.Context, root string, marks []mark, o options) error {
	rec, err := openRecord()
	if err != nil {
		return err
	}
	suites, err := due(rec, root, marks, o)
	if err != nil {
		return err
	}
	if len(suites) == 0 {
		fmt.Println("every suite has passed with these inputs before: ALL=1 runs them again")
		return nil
	}
	fmt.Println("building the programs that tests run ...")
	env, err := laneEnv(ctx, lane.Components)
	if err != nil {
		return err
	}
	all := &results{packages: map[string]float64{}}
	begun := time.Now()
	var late []string
	for _, s := range suites {
		if o.limit > 0 && time.Since(begun) > o.limit {
			late = append(late, s.Name)
			continue
		}
		r, took, err := suite(ctx, env, s, rec)
		if err != nil {
			return err
		}
		all.merge(r)
		fmt.Printf("suite %-11s %4.0f s  %d passed, %d failed, %d skipped\n", s.Name, took.Seconds(), r.count("pass"),
			len(r.failed())+len(r.broken), r.count("skip"))
		if err := rec.done(s, took, r); err != nil {
			return err
		}
	}
	if len(late) > 0 {
		fmt.Printf("not begun within %v, so the next run begins with them: %s\n", o.limit, strings.Join(late, ", "))
	}
	return errors.Join(all.report(), missing(all))
}

// A dueSuite is a suite that runs now, with the hash of its inputs.
type dueSuite struct {
	lane.Suite
	tests selection
	hash  string
}

// due returns the suites to run: those whose inputs changed first, then those that ran longest ago.
func due(rec *record, root string, marks []mark, o options) (list []dueSuite, err error) {
	for _, s := range lane.Suites {
		tests := selected(marks, s.Name)
		if !o.wants(s.Name) || len(tests) == 0 {
			continue
		}
		hash, err := inputs(root, s, tests)
		if err != nil {
			return nil, err
		}
		if absent(s.Name) {
			if touched(root, s.Packages) {
				return nil, fmt.Errorf("suite %s: %s is not built here, and the change touches what it tests", s.Name, s.Needs)
			}
			fmt.Printf("suite %-11s NOT RUN: %s is not built here\n", s.Name, s.Needs)
			continue
		}
		if rec.Suites[s.Name].Green == hash && !o.all {
			fmt.Printf("suite %-11s not run: its inputs are those of %s, when it passed\n", s.Name,
				rec.Suites[s.Name].When.Format(time.DateTime))
			continue
		}
		list = append(list, dueSuite{s, tests, hash})
	}
	slices.SortStableFunc(list, func(a, b dueSuite) int {
		return rec.Suites[a.Name].When.Compare(rec.Suites[b.Name].When)
	})
	return list, nil
}

// absent reports whether SCRIMP_WITHOUT names the suite: test/tools.sh had no time to build its component.
func absent(suite string) bool {
	return slices.Contains(strings.Split(os.Getenv("SCRIMP_WITHOUT"), ","), suite)
}

// touched reports whether the commits of the six hours before the newest one change any of the folders. Without git it
// reports false.
func touched(root string, folders []string) bool {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	newest, err := git("log", "-1", "--format=%ct")
	if err != nil {
		return false
	}
	seconds, err := strconv.ParseInt(newest, 10, 64)
	if err != nil {
		return false
	}
	base, err := git("rev-list", "-1", "--before="+time.Unix(seconds, 0).Add(-6*time.Hour).Format(time.RFC3339), "HEAD")
	if err != nil || base == "" {
		return false
	}
	names, err := git(append([]string{"diff", "--name-only", base, "HEAD", "--"}, folders...)...)
	return err == nil && names != ""
}

// suiteFlags are the flags of go test in the component lane. Go never caches its results: a real component is not
// among the files that Go compares.
var suiteFlags = []string{"-trimpath", "-count=1", "-vet=off", "-ldflags=-s -w", "-parallel", "4", "-timeout", hang}

// suite runs the tests of a suite, and each test that failed once more by itself. One that passes then counts as
// passed and is printed as FLAKY.
func suite(ctx context.Context, env []string, s dueSuite, rec *record) (*results, time.Duration, error) {
	begun := time.Now()
	r := &results{packages: map[string]float64{}}
	for _, pkg := range slices.Sorted(maps.Keys(s.tests)) {
		one, err := goTest(ctx, env, append(slices.Clip(suiteFlags), "-run", pattern(s.tests[pkg]), pkg)...)
		if err != nil {
			return nil, 0, err
		}
		if err := again(ctx, env, one, rec); err != nil {
			return nil, 0, err
		}
		r.merge(one)
	}
	return r, time.Since(begun), nil
}

// again runs the tests that failed once more, each by itself, and replaces the outcome of those that pass.
func again(ctx context.Context, env []string, r *results, rec *record) error {
	for _, f := range tops(r.failed()) {
		second, err := goTest(ctx, env, append(slices.Clip(suiteFlags), "-run", "^"+f.Test+"$", f.Package)...)
		if err != nil {
			return err
		}
		r.flaky(rec, f, second, func(o outcome) bool { return o.Package == f.Package && o.top() == f.Test })
	}
	return nil
}

// flaky replaces outcomes by those of a second run if nothing failed in it, and prints that test f is flaky.
func (r *results) flaky(rec *record, f outcome, second *results, replaced func(outcome) bool) {
	if len(second.failed())+len(second.broken) > 0 {
		return // it failed twice, so it fails
	}
	var failure strings.Builder
	for _, o := range r.outcomes {
		if o.Package == f.Package && o.top() == f.Test && o.Action == "fail" {
			failure.WriteString(o.Output)
		}
	}
	fmt.Printf("FLAKY %s failed once and passed when run again; %s; the failure's log is %s\n%s", f.Test,
		rec.flaky(f.Test), rec.keepLog(f.Test, failure.String()), begin(failure.String()))
	r.outcomes = append(slices.DeleteFunc(r.outcomes, replaced), second.outcomes...)
}

// tops returns the test functions of failed tests, in order, each once.
func tops(failed []outcome) (list []outcome) {
	for _, o := range failed {
		list = append(list, outcome{Package: o.Package, Test: o.top()})
	}
	slices.SortFunc(list, func(a, b outcome) int { return cmp.Compare(a.name(), b.name()) })
	return slices.Compact(list)
}

// missing returns an error if a component is not installed although SCRIMP_CI is 1.
func missing(r *results) error {
	var names []string
	for _, o := range r.outcomes {
		if o.Action == "skip" && strings.Contains(o.Output, "not installed") {
			names = append(names, o.name())
		}
	}
	if os.Getenv("SCRIMP_CI") != "1" || len(names) == 0 {
		return nil
	}
	return fmt.Errorf("under SCRIMP_CI=1 a component that is not installed is a failure: %s", strings.Join(names, ", "))
}

// Command testall runs the tests of one lane, names what it skipped and why, and ends with a count.
//
//	go run ./hack/testall                                  # the commit lane: needs nothing but Go
//	go run ./hack/testall -lane components [-all] [-only ssh,slurm]
//	go run ./hack/testall -lane nightly [-part 7/10] [-only race]
//	go run ./hack/testall -lane lint [-all]                # golangci-lint over the packages that changed
//
// internal/test/lane says which test belongs to which lane. Under SCRIMP_CI=1 a component that is not installed is a
// failure in the component lane.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/test/lane"
)

func main() {
	var o options
	flag.StringVar(&o.lane, "lane", lane.Commit, "`lane` to run: commit, components, nightly or lint")
	flag.BoolVar(&o.all, "all", false, "also suites and packages that have not changed since they last passed")
	only := flag.String("only", "", "comma-separated `names` of the suites or nightly steps to run (default: all)")
	flag.DurationVar(&o.limit, "limit", 0, "begin no further suite or step after this `time` (0: no limit)")
	flag.IntVar(&o.turn, "turn", 0, "nightly lane: begin with this step of the part, counted from 0 and round again")
	flag.StringVar(&o.part, "part", "", "nightly lane: run the `i/n`th part of the steps")
	flag.Parse()
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testall:", err)
		os.Exit(1)
	}
}

type options struct {
	lane  string
	all   bool
	only  []string
	limit time.Duration
	part  string
	turn  int
}

// wants reports whether a suite or step of that name is selected.
func (o options) wants(name string) bool {
	if len(o.only) == 0 {
		return true
	}
	return slices.Contains(o.only, name)
}

func run(ctx context.Context, o options) error {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	if err := os.Chdir(root); err != nil {
		return err
	}
	marks, err := scan(root)
	if err != nil {
		return err
	}
	switch o.lane {
	case lane.Commit:
		return commit(ctx, root, marks)
	case lane.Components:
		return components(ctx, root, marks, o)
	case lane.Night:
		return nightly(ctx, root, marks, o)
	case "lint":
		return lint(ctx, root, o)
	}
	return fmt.Errorf("unknown lane %q: write commit, components, nightly or lint", o.lane)
}

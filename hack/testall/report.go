package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report prints what a person needs to know about a run, in about 150 lines unless something failed: the slowest
// packages and tests, what was skipped and why, what failed, and the count as the last line.
func (r *results) report() error {
	fmt.Println()
	r.slowest()
	r.skips()
	failed := r.failed()
	for _, b := range r.broken {
		fmt.Printf("FAIL  %s\n", b)
	}
	for _, o := range failed {
		fmt.Printf("FAIL  %s\n%s\n", o.name(), begin(o.Output))
	}
	for _, o := range failed {
		fmt.Printf("failed %s\n", o.name())
	}
	if r.cached > 0 {
		fmt.Printf("%d packages from Go's test cache\n", r.cached)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", r.count("pass"), len(failed)+len(r.broken), r.count("skip"))
	switch {
	case len(failed)+len(r.broken) > 0:
		return errors.New("tests failed")
	case r.count("pass") == 0:
		return errors.New("no test ran")
	}
	return nil
}

// slowest prints the slowest packages and tests.
func (r *results) slowest() {
	names := slices.SortedFunc(maps.Keys(r.packages), func(a, b string) int {
		return cmp.Compare(r.packages[b], r.packages[a])
	})
	for _, p := range names[:min(len(names), 12)] {
		if r.packages[p] >= 1 {
			fmt.Printf("%6.1f s  %s\n", r.packages[p], p)
		}
	}
	took := slices.Clone(r.outcomes)
	slices.SortStableFunc(took, func(a, b outcome) int { return cmp.Compare(b.Seconds, a.Seconds) })
	shown := 0
	for _, o := range took {
		if o.Seconds < 1 || shown == 15 {
			break
		}
		if !strings.Contains(o.Test, "/") {
			fmt.Printf("%6.1f s  %s\n", o.Seconds, o.name())
			shown++
		}
	}
}

// skips prints what was skipped, by reason.
func (r *results) skips() {
	by := map[string][]string{}
	for _, o := range r.outcomes {
		if o.Action == "skip" {
			why := reason(o.Output)
			by[why] = append(by[why], o.name())
		}
	}
	for _, why := range slices.Sorted(maps.Keys(by)) {
		names := by[why]
		if len(names) == 1 {
			fmt.Printf("skipped %s: %s\n", names[0], why)
			continue
		}
		fmt.Printf("skipped %d tests: %s\n", len(names), why)
	}
}

// reason returns the message of a skipped test.
func reason(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "---") {
			continue
		}
		if place, rest, ok := strings.Cut(line, ": "); ok && strings.Contains(place, ".go:") {
			line = rest
		}
		return line
	}
	return "no reason given"
}

// begin returns the beginning of a test's output, because a program's log may follow.
func begin(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "===") {
			continue
		}
		if len(line) > 1000 {
			line = line[:1000] + " ...\n"
		}
		if b.WriteString(line); b.Len() > 12000 {
			b.WriteString("... (cut)\n")
			break
		}
	}
	return b.String()
}

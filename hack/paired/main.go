// Command paired compares this tree with another commit: it measures both in turn, in one run, and prints the figures
// side by side with their limits. It exits with status 1 if a limit is missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	base := flag.String("base", "HEAD~1", "the commit to compare with")
	quick := flag.Bool("quick", false, "the small form: some minutes")
	jobs := flag.Int("jobs", 0, "jobs in the queue of the server's load (1,000,000; quick: 20,000)")
	only := flag.String("only", "", "measure only what has a figure whose name matches this regular expression")
	asJSON := flag.Bool("json", false, "one object a line: the run, then each figure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	form := Form{Quick: *quick, Jobs: *jobs}
	if form.Jobs <= 0 {
		form.Jobs = pick(form, 20_000, 1_000_000)
	}
	report, err := paired(ctx, *base, form, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "paired:", err)
		os.Exit(2)
	}
	write := report.Table
	if *asJSON {
		write = report.JSON
	}
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "paired:", err)
		os.Exit(2)
	}
	if v := worst(report.Rows); v == Missed || v == Failed {
		os.Exit(1)
	}
}

// paired measures both trees.
func paired(ctx context.Context, base string, form Form, only string) (r Report, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return r, fmt.Errorf("read -only: %w", err)
	}
	top, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return r, err
	}
	if err := os.Chdir(top); err != nil {
		return r, err
	}
	w, trees, err := open(ctx, top, base)
	if err != nil {
		return r, err
	}
	defer w.close()
	before := busy()
	run := &runner{trees: trees}
	for _, m := range measures(form, run.note) {
		if !slices.ContainsFunc(m.Figures, func(f Figure) bool { return match.MatchString(f.Name) }) {
			continue
		}
		rows, err := run.measure(ctx, m)
		if err != nil {
			return r, err
		}
		r.Rows = append(r.Rows, rows...)
	}
	r.Base, r.Now, r.Form, r.Notes = trees[0].Commit, trees[1].Commit, pick(form, "quick", "full"), run.notes
	r.Machine = fmt.Sprintf("%d processors, load %s before and %s after, %s",
		runtime.NumCPU(), before, busy(), time.Now().UTC().Format(time.DateOnly))
	return r, nil
}

// busy returns the load of the machine over a minute, if the system reports it.
func busy() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// runner runs measures in both trees.
type runner struct {
	trees [2]*Tree
	mu    sync.Mutex
	notes []string
}

func (r *runner) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// result holds a tree's values over the rounds.
type result struct {
	samples map[string]Samples
	err     error // the first error, after which the tree is not measured again
}

// measure runs one measure, in turn: base, now, now, base, base, now and so on.
func (r *runner) measure(ctx context.Context, m Measure) ([]Row, error) {
	results := [2]result{{samples: map[string]Samples{}}, {samples: map[string]Samples{}}}
	for round := range m.Rounds {
		order := []int{round % 2, 1 - round%2}
		var all sync.WaitGroup
		for _, i := range order {
			fmt.Fprintf(os.Stderr, "%s: round %d of %d, %s\n", m.Name, round+1, m.Rounds, r.trees[i].Name)
			one := func() { results[i].add(m.Run(ctx, r.trees[i])) }
			switch {
			case results[i].err != nil:
			case m.Alike:
				all.Go(one)
			default:
				one()
			}
		}
		all.Wait()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	for i, t := range r.trees {
		if err := results[i].err; err != nil {
			r.note(fmt.Sprintf("not measured in %s (%s): %s: %v", t.Name, t.Commit, m.Name, err))
		}
	}
	return rows(m, results), nil
}

// add stores the values of a round.
func (r *result) add(found map[string]float64, err error) {
	for _, key := range slices.Sorted(maps.Keys(found)) {
		r.samples[key] = append(r.samples[key], found[key])
	}
	r.err = err
}

// rows returns the figures of a measure.
func rows(m Measure, results [2]result) []Row {
	list := make([]Row, 0, len(m.Figures))
	for _, f := range m.Figures {
		row := Row{Figure: f, Base: results[0].samples[f.Key], Now: results[1].samples[f.Key]}
		err := results[1].err
		row.Failed = err != nil && !errors.Is(err, errNotThere)
		list = append(list, row)
	}
	return list
}

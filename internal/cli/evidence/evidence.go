// Package evidence reads what a check judges a job by: earlier runs of its name, and the programs that its command
// names.
package evidence

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/pastruns"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quiet"
	"scrimp/internal/wire/telemetry"
)

// mostRuns is how many runs of the same name a check examines.
const mostRuns = 5

// mostProgram bounds the program files that are read, in bytes.
const mostProgram = 1 << 20

// Programs reads the files of the work folder that the command names.
func Programs(j spec.Job, folder string) []check.Text {
	words := strings.FieldsFunc(j.Command, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>'\"`=,", r) })
	root, err := os.OpenRoot(folder) // restricts reading to the work folder
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	var list []check.Text
	var seen []string
	for _, w := range append(words, j.Args...) {
		name := filepath.Clean(w)
		if slices.Contains(seen, name) ||
			!slices.Contains([]string{".py", ".sh", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini"}, filepath.Ext(name)) {
			continue
		}
		seen = append(seen, name)
		info, err := root.Stat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > mostProgram {
			continue
		}
		if b, err := quiet.ReadFileIn(root, name); err == nil {
			list = append(list, check.Text{Name: name, Body: string(b)})
		}
	}
	return list
}

// Runs returns the results of the newest runs of a name, from their receipts, including profiles.
func Runs(ctx context.Context, cl *command.Client, name string) ([]check.Run, error) {
	jobs, err := newestOf(ctx, cl, name)
	if err != nil {
		return nil, err
	}
	used := map[string]float64{} // of the processors, on machines without accelerators
	list, err := pastruns.Runs(ctx, cl, name, false)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if r.Cores != nil && r.CPUs > 1 && r.Accelerator == "" { // a machine has at least one processor
			used[r.Job] = min(1, *r.Cores/float64(r.CPUs))
		}
	}
	var runs []check.Run
	for _, j := range jobs {
		r, err := cl.Receipt(ctx, j.ID)
		if err != nil {
			return nil, err
		}
		run := earlier(r)
		run.Profile = j.Name == runhistory.Profile(name)
		if v, ok := used[j.ID]; ok && !run.Utilisation.OK {
			run.Utilisation = figure.Known(v)
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// Bounds of the search for earlier runs: pages, and jobs per page.
const (
	mostPages  = 20
	jobsOfPage = 1000
)

// newestOf returns the newest closed runs of a name, newest first.
func newestOf(ctx context.Context, cl *command.Client, name string) ([]api.Job, error) {
	var found []api.Job
	before := ""
	for range mostPages {
		page, next, err := cl.JobsPage(ctx, url.Values{"limit": {strconv.Itoa(jobsOfPage)}, "before": {before}})
		if err != nil {
			return nil, err
		}
		for _, j := range slices.Backward(page) {
			if j.Closed && (j.Name == name || j.Name == runhistory.Profile(name)) {
				if found = append(found, j); len(found) == mostRuns {
					return found, nil
				}
			}
		}
		if before = next; before == "" {
			break
		}
	}
	return found, nil
}

// Proven refuses a long spot run unless an earlier run has shown that its checkpoints work.
func Proven(ctx context.Context, cl *command.Client, j spec.Job) error {
	if time.Duration(j.Work.Time) <= check.LongRun {
		return nil
	}
	runs, err := Runs(ctx, cl, j.Name)
	if err != nil {
		return err
	}
	for _, f := range check.Check(check.Case{Job: j, Runs: runs}).Findings {
		if f.ID == "spot-proven" && f.Verdict == check.Fail {
			return fmt.Errorf("not run: %s: %s", f.Evidence, f.Fix)
		}
	}
	return nil
}

// earlier converts a receipt for a check.
func earlier(r receipt.Receipt) check.Run {
	run := check.Run{Job: r.Job, State: r.State, Steps: r.Step, Checkpoints: r.Checkpoints,
		Interruptions: r.Interrupted}
	if r.Currency == money.USD {
		run.CostUSD = figure.Known(r.Cost.Float())
	}
	if r.FinishedMarket != nil {
		run.Finished = *r.FinishedMarket
	}
	for _, t := range r.Tries {
		if t.Begun == nil {
			continue
		}
		run.Worked += t.Until.Sub(*t.Begun)
		if t.Restored != "" && t.Last > t.First { // it restored and made progress; in wall time, as a program starts
			run.Resumes = append(run.Resumes, time.Duration(float64(t.Begun.Sub(t.From))/max(1, r.MarketSpeed)))
		}
	}
	for _, name := range []string{"gpu_utilisation", "gpu_utilization", "gpu_util", "utilisation", "utilization"} {
		if v, ok := r.Metrics[name]; ok && v >= 0 && v <= 100 {
			if v > 1 {
				v /= 100
			}
			run.Utilisation = figure.Known(v)
			break
		}
	}
	if v, ok := inUse(r.Telemetry); ok && !run.Utilisation.OK {
		run.Utilisation = figure.Known(v)
	}
	shares(&run, r)
	return run
}

// shares adds what a receipt says of savings, waits, lost work and memory.
func shares(run *check.Run, r receipt.Receipt) {
	run.DeadlineMet = r.DeadlineMet
	if r.SavedShare != nil {
		run.Saved = figure.Known(*r.SavedShare)
	}
	if r.SaveSeconds != nil {
		run.Save = time.Duration(*r.SaveSeconds * float64(time.Second))
	}
	if run.Worked > 0 {
		run.Lost = figure.Known(min(1, r.LostSeconds/run.Worked.Seconds()))
	}
	var started, paid, begun float64 // seconds of attempts that started their program, and of all machines
	for _, t := range r.Tries {
		span := t.Until.Sub(t.From).Seconds()
		paid += span * float64(max(1, len(t.Nodes)))
		if t.Begun != nil {
			started, begun = started+t.Begun.Sub(t.From).Seconds(), begun+span
		}
	}
	if begun > 0 {
		run.StartUp = figure.Known(started / begun)
	}
	if r.Data != nil && r.Data.Unreported == 0 && paid > 0 {
		run.Waited = figure.Known(min(1, r.Data.Seconds/paid))
	}
	if t := r.Telemetry; t != nil && t.Seconds >= enoughMeasured && t.GPUMemory > 0 {
		if held, known := t.Figure(telemetry.GPUMemory); known {
			run.Held = figure.Known(min(1, held.Peak/float64(t.GPUMemory)))
		}
	}
}

// enoughMeasured is the minimum measured time, in seconds, for the use of machines to be meaningful.
const enoughMeasured = 60

// inUse returns the share of the paid GPUs that a job used, or of the processors of a machine without GPUs. A machine
// with one processor has no share: it cannot have fewer.
func inUse(t *receipt.Telemetry) (float64, bool) {
	if t == nil || t.Seconds < enoughMeasured {
		return 0, false
	}
	if gpu, known := t.Figure(telemetry.GPU); known {
		return gpu.Average, true
	}
	cpu, known := t.Figure(telemetry.TaskCPU)
	if !known || t.GPUs > 0 || t.Cores < 2 {
		return 0, false
	}
	return min(1, cpu.Average/float64(t.Cores)), true
}

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/learn"
	"scrimp/internal/cli/offers"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/measured"
	"scrimp/internal/decide/rank"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/server"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/telemetry"
)

// mostRuns is how many runs of the same name a check examines.
const mostRuns = 5

func (a *app) checkCmd() *cobra.Command {
	var f jobfile.Flags
	var facts []string
	var file string
	var force, all bool
	cmd := &cobra.Command{
		Use:   "check job.yaml",
		Short: "Check a job against checklists before it costs money",
		Long: "Checks a job against four lists (before training, during, before deployment, in production). Each item gets " +
			"a verdict, its evidence and its fix. " +
			"It reads the job file, the programs that its command names, earlier runs of the same name, and the catalogue. " +
			"What none of them answers is unknown, and never passes; state it with --fact.\n\n" +
			"Exit status: 0 nothing fails, 2 something does, 1 error.",
		Example: "  scrimp check job.yaml\n  scrimp check job.yaml --fact utilisation=82% --fact quantised=int8\n" +
			"  scrimp check job.yaml --facts facts.yaml --json\n\nWhat --fact takes:\n" +
			strings.TrimSuffix(show.Facts(show.Place{Width: command.HelpWidth}), "\n"),
		Args: command.TakesJob, GroupID: command.GroupRun, ValidArgsFunction: command.CompleteJobFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := a.Now().UTC()
			j, folder, notes, err := jobfile.Load(spec.Read, args, cmd.ArgsLenAtDash(), f, now)
			if err != nil {
				return err
			}
			jobfile.Note(a.App, notes)
			c := check.Case{Job: j, Now: now, Force: force, Texts: programs(j, folder)}
			away, err := command.Far(a.Data)
			if err != nil {
				return err
			}
			program := cmp.Or(j.Command, strings.Join(j.Args[:min(1, len(j.Args))], ""))
			c.Found = jobfile.Found(cmd.Context(), program, away != nil)
			if c.Facts, err = readFacts(file, facts); err != nil {
				return err
			}
			cat, _, err := offers.LoadCatalog(a.App)
			if err != nil {
				return err
			}
			c.Offers = cat.Listings
			if err := a.history(cmd.Context(), &c); err != nil {
				return err
			}
			if j.Model.Named() {
				if err := a.expect(cmd.Context(), &c, folder); err != nil {
					a.Notef("note: no estimate: %v\n", err)
				}
			}
			r := check.Check(c)
			if a.JSON {
				err = a.Print(r)
			} else {
				a.Printf("%s", show.Checklist(r, all, a.Place()))
			}
			if err == nil && !r.OK {
				return command.Infeasible
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&f.Env, "env", nil, "set `NAME=VALUE` in the program's environment (may be repeated)")
	cmd.Flags().StringArrayVar(&facts, "fact", nil, "state `NAME=VALUE`, which nothing else says (default none; may "+
		"be repeated)")
	cmd.Flags().StringVar(&file, "facts", "", "YAML `file` of such names and values; --fact goes over it (default none)")
	cmd.Flags().BoolVar(&all, "all", false, "list every item (default: not those of deployment and production where "+
		"nothing is known of them)")
	cmd.Flags().BoolVar(&force, "force", false, "let a long run go on spot without proven checkpoints (default: it fails)")
	return cmd
}

// expect adds the model's estimate for the machine that a plan would take.
func (a *app) expect(ctx context.Context, c *check.Case, folder string) error {
	q, _, err := a.question(ctx, c.Job, c.WorkFrom, folder, catalog.Catalog{Listings: c.Offers}, c.Now)
	if err != nil {
		return err
	}
	answer := rank.Rank(q)
	var p rank.Plan
	switch {
	case answer.Feasible:
		p = answer.Plans[0]
	case len(answer.Rejected) > 0:
		p = answer.Rejected[0].Plan
	}
	if p.Offer == nil {
		return errors.New("no matching offers in the catalogue")
	}
	e := check.Estimate{CostLow: p.Cost.Low, Cost: p.Cost.Value, CostHigh: p.Cost.High,
		Time:   time.Duration(p.Hours.Value * float64(time.Hour)),
		Source: fmt.Sprintf("%s, on %s", strings.TrimRight(p.Source, ". "), p.ID)}
	if x, ok := q.Estimate(rank.Shape{Accelerator: p.Offer.Offer.Accelerator, Each: p.Offer.Offer.Accelerators,
		Machines: p.Machines}, 0); ok {
		e.PeakMemory = x.Memory
	}
	c.Estimate = &e
	return nil
}

// readFacts reads the user's facts from a file and from flags.
func readFacts(file string, flags []string) (map[string]string, error) {
	facts := map[string]string{}
	var all []string
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read facts: %w", err)
		}
		var values map[string]yaml.Node
		if err := yaml.Unmarshal(text, &values); err != nil {
			return nil, fmt.Errorf("read facts of %s: it is a list of lines such as quantised: int8: %w", file, err)
		}
		for name, v := range values {
			all = append(all, name+"="+v.Value)
		}
		slices.Sort(all)
	}
	for _, s := range append(all, flags...) {
		name, value, err := check.ParseFact(s)
		if err != nil {
			return nil, err
		}
		facts[name] = value
	}
	return facts, nil
}

// mostProgram bounds the program files that are read, in bytes.
const mostProgram = 1 << 20

// programs reads the files of the work folder that the command names.
func programs(j spec.Job, folder string) []check.Text {
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
		if b, err := root.ReadFile(name); err == nil {
			list = append(list, check.Text{Name: name, Body: string(b)})
		}
	}
	return list
}

// history adds the data folder's earlier runs of the same name, and the offers of its market.
func (a *app) history(ctx context.Context, c *check.Case) error {
	if _, err := os.Stat(filepath.Join(a.Data, server.TokenName)); errors.Is(err, os.ErrNotExist) {
		return nil // nothing has ever run here
	}
	cl, err := a.Ensure(ctx, "")
	if err != nil {
		return err
	}
	var m api.Market
	if err := cl.Do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
		return err
	}
	for _, l := range m.Offers {
		c.Here = append(c.Here, catalog.Listing{Offer: convert.To[market.Offer](l.Offer),
			Quote: convert.To[market.Quote](l.Quote), RuleSource: m.Clock.Name})
	}
	c.Offers = append(c.Offers, c.Here...)
	c.Job, c.WorkFrom = learn.From(ctx, a.App, cl, c.Job)
	c.Runs, err = earlierRuns(ctx, cl, c.Job.Name)
	return err
}

// earlierRuns returns the results of the newest runs of a name, from their receipts, including profiles.
func earlierRuns(ctx context.Context, cl *command.Client, name string) ([]check.Run, error) {
	jobs, err := newestOf(ctx, cl, name)
	if err != nil {
		return nil, err
	}
	used := map[string]float64{} // of the processors, on machines without accelerators
	list, err := learn.Runs(ctx, cl, name, false)
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
		run.Profile = j.Name == measured.Profile(name)
		if v, ok := used[j.ID]; ok && !run.Utilisation.OK {
			run.Utilisation = catalog.Known(v)
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
			if j.Closed && (j.Name == name || j.Name == measured.Profile(name)) {
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
	runs, err := earlierRuns(ctx, cl, j.Name)
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
		run.CostUSD = catalog.Known(r.Cost.Float())
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
			run.Utilisation = catalog.Known(v)
			break
		}
	}
	if v, ok := inUse(r.Telemetry); ok && !run.Utilisation.OK {
		run.Utilisation = catalog.Known(v)
	}
	return run
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

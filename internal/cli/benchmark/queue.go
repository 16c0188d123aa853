package benchmark

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/show/simulation"
	"scrimp/internal/decide/pack"
	"scrimp/internal/decide/pack/scheduler"
	"scrimp/internal/decide/pack/static"
	"scrimp/internal/sim/queue"
)

// traceFlags name the files of jobs and machines, and the number of jobs to use.
type traceFlags struct {
	trace, catalog string
	columns        queue.Columns
	first          int
}

func (f *traceFlags) add(cmd *cobra.Command) {
	f.columns = queue.DefaultColumns
	cmd.Flags().StringVar(&f.trace, "trace", "", "CSV `file` of the jobs (default: none, with --history)")
	cmd.Flags().StringVar(&f.catalog, "catalog", "", "CSV `file` of the machine types (default: none, with --history)")
	cmd.Flags().IntVar(&f.first, "first", 0, "only the first `N` jobs (default all)")
	_ = cmd.MarkFlagFilename("trace", "csv")
	_ = cmd.MarkFlagFilename("catalog", "csv")
}

// read reads both files. changed reports whether a flag is given.
func (f *traceFlags) read(changed func(flag string) bool) (jobs []queue.Job, types []queue.Machine, err error) {
	if f.first < 1 && changed("first") {
		return nil, nil, fmt.Errorf("--first %d: give 1 or more jobs, or leave it out for all", f.first)
	}
	in, err := os.Open(f.trace)
	if err != nil {
		return nil, nil, fmt.Errorf("read --trace: %w", err)
	}
	defer func() { _ = in.Close() }()
	trace, catalog := filepath.Base(f.trace), filepath.Base(f.catalog)
	if jobs, err = queue.ReadTrace(trace, in, f.columns); err != nil {
		return nil, nil, err
	}
	cat, err := os.Open(f.catalog)
	if err != nil {
		return nil, nil, fmt.Errorf("read --catalog: %w", err)
	}
	defer func() { _ = cat.Close() }()
	if types, err = queue.ReadCatalog(catalog, cat); err != nil {
		return nil, nil, err
	}
	return jobs, types, queue.Check(trace, jobs, catalog, types)
}

func (a *app) queueCmd() *cobra.Command {
	var f traceFlags
	var past pastFlags
	var interference string
	var factor float64
	var asked []string
	cmd := &cobra.Command{
		Use:   "queue --trace FILE --catalog FILE | --history",
		Short: "Replay a trace of jobs under packing policies",
		Long: `Replays a trace of jobs on rented machines under each packing policy. The rules are those of the public packing
benchmark (Eva, EuroSys 2025): whole seconds, and a round of the scheduler every 300 s. Machines are bought
on demand and never run out. no-packing gives each job a machine of its own, stratus knows how long jobs run,
eva is the benchmark's policy, and default is scrimp's packing engine, which the server's queue does not use yet.
default-sla also keeps deadlines of S times the work plus 900 s, and knows how much work is left. No policy knows
in advance how much jobs slow each other down; each learns it.

--interference u95: each of n jobs on a machine runs at 0.95^(n-1). pairs:FILE: at the product of a file's rates.

Files, CSV with a header: the trace has job_id, workload, gpu, vcpu, mem_gb, image_id, the columns of arrival and
work, and init_delay_s, fetch_delay_s, build_image_delay_s, kill_delay_s, upload_delay_s; the catalog has name,
gpu, vcpu, mem_gb, usd_per_hour, instantiate_s, run_worker_s, register_s, terminate_s.

--history replays the jobs of the server's log that succeeded, with the work and the start-up that were measured, on
the on-demand machine types of its market at their last price: what would another rule, or with --types another
machine type, have cost? With --rate it replays them in the server's own queue instead, a machine for each job, under
that limit of dollars an hour: what would each team have paid, and how long would its jobs have taken, with other
weights (--weight) than the same for all?

Exit status: 0 done, 1 a file or a flag cannot be used.`,
		Example: `  scrimp simulate queue --trace jobs.csv --catalog types.csv
  scrimp simulate queue --trace jobs.csv --catalog types.csv --first 200 --policy no-packing,default --json
  scrimp simulate queue --history --since 30d
  scrimp simulate queue --history --rate 12.50 --weight vision=2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := past.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if math.IsNaN(factor) || factor < 1 || factor > 1000 {
				return fmt.Errorf("--deadline-factor %v: give 1 to 1000 times the work", factor)
			}
			names, err := named(asked)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("rate") {
				return a.replayLimited(cmd.Context(), past)
			}
			if past.history {
				c := queue.Config{Interference: queue.U95(), Deadline: factor, Clock: a.Now}
				return a.replayHistory(cmd.Context(), past, c, names)
			}
			jobs, types, err := f.read(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			c := queue.Config{Types: types, Deadline: factor, Clock: a.Now}
			if c.Interference, err = readInterference(interference, jobs); err != nil {
				return err
			}
			if c.Jobs = jobs; f.first > 0 {
				c.Jobs = jobs[:min(f.first, len(jobs))]
			}
			return a.queue(cmd.Context(), c, names)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.columns.Arrival, "arrival-column", f.columns.Arrival,
		"`column` of the trace with arrivals in seconds")
	cmd.Flags().StringVar(&f.columns.Work, "work-column", f.columns.Work, "`column` of the trace with seconds of work")
	cmd.Flags().StringVar(&interference, "interference", "u95", "`rates` of jobs on one machine: u95, or "+
		"pairs:FILE (CSV of workload, colocated_with, normalised_throughput)")
	cmd.Flags().Float64Var(&factor, "deadline-factor", 1.25,
		"deadlines of default-sla: `S` times the work, plus 900 s")
	cmd.Flags().StringSliceVar(&asked, "policy", nil,
		"only these `policies`: "+strings.Join(scheduler.Names, ", ")+" (default all)")
	past.add(cmd)
	return cmd
}

// named returns the selected policies in table order.
func named(asked []string) ([]string, error) {
	for _, p := range asked {
		if !slices.Contains(scheduler.Names, p) {
			return nil, fmt.Errorf("--policy %q is none of %s", p, strings.Join(scheduler.Names, ", "))
		}
	}
	if len(asked) == 0 {
		return scheduler.Names, nil
	}
	return slices.DeleteFunc(slices.Clone(scheduler.Names), func(n string) bool { return !slices.Contains(asked, n) }), nil
}

func readInterference(text string, jobs []queue.Job) (queue.Interference, error) {
	file, pairs := strings.CutPrefix(text, "pairs:")
	switch {
	case text == "u95":
		return queue.U95(), nil
	case !pairs || file == "":
		return queue.Interference{}, fmt.Errorf("--interference %q: write u95 or pairs:FILE", text)
	}
	in, err := os.Open(file)
	if err != nil {
		return queue.Interference{}, fmt.Errorf("read --interference: %w", err)
	}
	defer func() { _ = in.Close() }()
	return queue.ReadPairs(filepath.Base(file), in, jobs)
}

func (a *app) queue(ctx context.Context, c queue.Config, names []string) error {
	tell := a.Counter()
	answer := simulation.QueueReplay{Jobs: len(c.Jobs), Factor: c.Deadline}
	for i, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		tell("policies", i, len(names))
		c.Policy = name
		answer.Policies = append(answer.Policies, simulation.QueuePolicyOf(queue.Run(c)))
	}
	tell("policies", len(names), len(names))
	return a.Show(answer, answer.Text(a.Place()))
}

func (a *app) packCmd() *cobra.Command {
	var f traceFlags
	var repeat bool
	cmd := &cobra.Command{
		Use:   "pack --trace FILE --catalog FILE",
		Short: "Pack the jobs of a trace at once, beside a lower bound",
		Long: `Packs the jobs of a trace onto new machines, all at once and without interference, at the lowest sum of prices
that column generation finds, and prints the lower bound of the same linear program: no packing costs less.

Files as for scrimp simulate queue. Exit status: 0 done, 1 a file or a flag cannot be used.`,
		Example: `  scrimp simulate pack --trace jobs.csv --catalog types.csv --first 1000
  scrimp simulate pack --trace jobs.csv --catalog types.csv --first 8000 --repeat --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			jobs, types, err := f.read(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			n := len(jobs)
			switch {
			case f.first > mostPacked:
				return fmt.Errorf("--first %d: give at most %d jobs", f.first, mostPacked)
			case f.first > n && !repeat:
				return fmt.Errorf("--first %d: the trace has %d jobs: add --repeat to take them again", f.first, n)
			case repeat && f.first == 0:
				return errors.New("--repeat goes with --first N: it repeats the jobs up to N")
			case f.first > 0:
				n = f.first
			}
			answer := simulation.PackResults{Results: []simulation.PackResult{a.pack(jobs, types, n)}}
			return a.Show(answer, answer.Text(a.Place()))
		},
	}
	f.add(cmd)
	_ = cmd.MarkFlagRequired("trace")
	_ = cmd.MarkFlagRequired("catalog")
	f.columns = queue.Columns{} // jobs that are packed at once need neither arrival nor work
	cmd.Flags().BoolVar(&repeat, "repeat", false,
		"repeat the jobs in order where --first is larger than the trace (default: refuse)")
	return cmd
}

// mostPacked bounds the jobs that are packed at once.
const mostPacked = 1_000_000

func (a *app) pack(jobs []queue.Job, types []queue.Machine, n int) simulation.PackResult {
	var offers []pack.Type
	for _, t := range types {
		offers = append(offers, pack.Type{Name: t.Name, Size: t.Size, Price: t.Price})
	}
	sizes := make([]pack.Size, n)
	for i := range sizes {
		sizes[i] = jobs[i%len(jobs)].Size
	}
	began := a.Now()
	p := static.Pack(offers, sizes)
	took := a.Now().Sub(began)
	r := simulation.PackResult{Tasks: n, Policy: scheduler.Default, Bound: p.Bound,
		Seconds: took.Round(time.Microsecond).Seconds()}
	r.Exact = p.Cost(offers)
	r.Cost, r.Machines = r.Exact.Float(), len(p.Bins)
	return r
}

package simulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/replay"
	"scrimp/internal/sim/tick"
)

func (a *app) simulateCmd() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use: "simulate job.yaml --market FILE", Short: "Simulate a job on a recorded market, and compare policies",
		GroupID: command.GroupMoney,
		Long: `Simulates the job on a recorded or generated market with the production code, once for each deadline
policy, and compares cost, finish, interruptions and lost work with on-demand and with an oracle that
knows the future (the optimum, on a grid of a minute or more).
--seeds N submits the job at N times spread over the market. Nothing is rented, and no server is needed.
--history answers: which policy would have saved most on the jobs that this server has run?

Exit status: 0 done, 2 no policy can meet the deadline, 1 error.`,
		Example: `  scrimp simulate job.yaml --market stormy --seeds 20
  scrimp simulate job.yaml --market recorded.yaml --policy default,on-demand --svg runs.svg
  scrimp simulate --history --since 30d`,
		Args: func(cmd *cobra.Command, args []string) error { return f.check(args, cmd.Flags().Changed) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.history {
				return a.simulateHistory(cmd.Context(), f)
			}
			return a.simulateJob(cmd, args, f)
		},
	}
	a.simulateFlags(cmd, &f)
	cmd.AddCommand(a.simulateDeadlineCmd(), a.simulateZonesCmd(), a.simulateQueueCmd(),
		a.simulatePackCmd())
	return cmd
}

// policyFlag adds --policy and returns the names asked for, in the order of the table.
func policyFlag(cmd *cobra.Command) func() ([]string, error) {
	var asked []string
	cmd.Flags().StringSliceVar(&asked, "policy", nil, "only these `policies`: "+strings.Join(replay.Names, ", ")+
		" (default all)")
	return func() ([]string, error) {
		if len(asked) == 0 {
			return replay.Names, nil
		}
		for _, p := range asked {
			if !slices.Contains(replay.Names, p) {
				return nil, fmt.Errorf("--policy %q is none of %s", p, strings.Join(replay.Names, ", "))
			}
		}
		return slices.DeleteFunc(slices.Clone(replay.Names), func(n string) bool { return !slices.Contains(asked, n) }), nil
	}
}

// gangFlags say on how many machines the job of a benchmark runs, and how they are lost.
type gangFlags struct {
	nodes int
	alone bool
}

func (f *gangFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.nodes, "nodes", 1,
		fmt.Sprintf("how many machines, `N`, the job has at once, 1 to %d", tick.MostNodes))
	cmd.Flags().BoolVar(&f.alone, "alone", false,
		"with --nodes: machines are also lost one by one (default: all come and go together, as the files say of one)")
}

func (f *gangFlags) check() error {
	switch {
	case f.nodes < 1 || f.nodes > tick.MostNodes:
		return fmt.Errorf("--nodes %d: give 1 to %d machines", f.nodes, tick.MostNodes)
	case f.alone && f.nodes == 1:
		return errors.New("--alone goes with --nodes of 2 or more: one machine is lost as the files say")
	}
	return nil
}

// says is what stands above the table of a job on several machines.
func (f *gangFlags) says(width int) string {
	lost := "all of them when the files say so of one"
	switch {
	case f.nodes == 1:
		return ""
	case f.alone:
		lost += ", and one by one besides"
	}
	return draw.Wrap("", fmt.Sprintf("%d machines at once, lost %s; costs are those of all", f.nodes, lost), width) + "\n"
}

func (a *app) simulateDeadlineCmd() *cobra.Command {
	var availability, windows string
	var gang gangFlags
	cmd := &cobra.Command{
		Use:   "deadline --availability FILE --windows FILE",
		Short: "The public benchmark with one zone: spot, on-demand, or wait?",
		Long: `Plays the public deadline benchmark (Can't Be Late, NSDI 2024): 48 h of work, a deadline 52 or 70 h
after the window's start, 3 or 12 min to restart, spot at $0.9731/h and on-demand at $3.06/h, in ticks of
10 min, for every window of the file. Every policy decides through the production core; the
optimum is that of an oracle that knows the future, by dynamic programming. --nodes 4 runs a job on
four machines at once.

Files: availability (zone,start_tick,ticks,available) and windows (zone,window,start_tick,ticks), CSV with
a header. Exit status: 0 done, 1 a file is missing or not in its form.`,
		Args: cobra.NoArgs,
	}
	names := policyFlag(cmd)
	cmd.Flags().StringVar(&availability, "availability", "", "CSV `file` of when spot was available, run-length coded")
	cmd.Flags().StringVar(&windows, "windows", "", "CSV `file` of the windows to replay")
	_ = cmd.MarkFlagRequired("availability")
	_ = cmd.MarkFlagRequired("windows")
	gang.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asked, err := names()
		if err := errors.Join(err, gang.check()); err != nil {
			return err
		}
		af, err := os.Open(availability)
		if err != nil {
			return fmt.Errorf("read --availability: %w", err)
		}
		defer func() { _ = af.Close() }()
		wf, err := os.Open(windows)
		if err != nil {
			return fmt.Errorf("read --windows: %w", err)
		}
		defer func() { _ = wf.Close() }()
		list, err := tick.ReadSingle(af, availability, wf, windows)
		if err != nil {
			return err
		}
		runs, err := tick.SingleRuns(list)
		if err != nil {
			return err
		}
		runs = tick.OnNodes(runs, gang.nodes, gang.alone)
		scores, err := replay.Deadline(cmd.Context(), runs, asked, a.Now, a.Counter())
		if err != nil {
			return err
		}
		return a.scores(scores, 0, gang)
	}
	return cmd
}

func (a *app) simulateZonesCmd() *cobra.Command {
	var availability, prices string
	var forms []string
	var gang gangFlags
	cmd := &cobra.Command{
		Use:   "zones --availability FILE --prices FILE",
		Short: "The public benchmark with several zones: where to run, and when?",
		Long: `Plays the public benchmark with several zones: one V100, ticks of 195 s, 48 h of work by 52 h or 24 h by
36 or 48 h, 3 or 12 min to restart, on-demand at $3.06/h, live spot prices, and a checkpoint that takes
90 s and $1 to another region, over ten groups of zones. In form A every zone is seen in every tick, in
form B the held one and one other that the policy asks about. Every policy decides through the production
core; the optimum knows the future, takes minutes, and is kept in the user's cache folder. --nodes 4 runs a
job on four machines at once, each of which has as much to carry.

Files: availability (window,zone,start_tick,ticks,available) and prices (window,zone,start_tick,ticks,
usd_per_hour), CSV with a header. Exit status: 0 done, 1 a file is missing or not in its form.`,
		Args: cobra.NoArgs,
	}
	names := policyFlag(cmd)
	cmd.Flags().StringVar(&availability, "availability", "", "CSV `file` of when spot was available, run-length coded")
	cmd.Flags().StringVar(&prices, "prices", "", "CSV `file` of the spot prices, run-length coded")
	cmd.Flags().StringSliceVar(&forms, "form", []string{"A", "B"}, "what a policy sees: `A`, B or both")
	_ = cmd.MarkFlagRequired("availability")
	_ = cmd.MarkFlagRequired("prices")
	gang.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asked, err := names()
		if err := errors.Join(err, gang.check()); err != nil {
			return err
		}
		for _, f := range forms {
			if f != "A" && f != "B" {
				return fmt.Errorf("--form %q is neither A nor B", f)
			}
		}
		windows, err := readZones(availability, prices)
		if err != nil {
			return err
		}
		if unknown := tick.Ungrouped(windows); len(unknown) > 0 {
			a.Notef("nothing runs on %s: the benchmark has no group with them\n", strings.Join(unknown, ", "))
		}
		rows, without, err := a.zoneRows(windows, forms)
		if err != nil {
			return fmt.Errorf("%s: %w", availability, err)
		}
		tell := a.Counter()
		var optima []money.Amount
		if slices.Contains(asked, replay.Optimum) && len(rows) > 0 {
			if optima, err = a.zoneOptima(cmd.Context(), rows[0].Runs, tell); err != nil {
				return err
			}
		}
		for i := range optima { // those are of one machine, and kept
			optima[i] = tick.Times(optima[i], gang.nodes)
		}
		for i := range rows {
			rows[i].Runs = tick.ZonesOnNodes(rows[i].Runs, gang.nodes, gang.alone)
		}
		scores, err := replay.SeveralZones(cmd.Context(), rows, optima, asked, a.Now, tell)
		if err != nil {
			return err
		}
		return a.scores(scores, without, gang)
	}
	return cmd
}

// zoneRows are the runs of each form, and how many pairs of group and window the files
// lack a zone of.
func (a *app) zoneRows(windows []tick.ZoneWindow, forms []string) (rows []replay.ZoneRow, without int, err error) {
	for _, f := range forms {
		if slices.ContainsFunc(rows, func(r replay.ZoneRow) bool { return r.Form == f }) {
			continue
		}
		runs, left, err := tick.ZoneRuns(windows, f == "B")
		if err != nil {
			return nil, 0, err
		}
		if left > 0 && len(rows) == 0 {
			a.Notef("%d pairs of group and window left out: the files lack a zone of the group\n", left)
		}
		without = left
		rows = append(rows, replay.ZoneRow{Form: f, Runs: runs})
	}
	return rows, without, nil
}

// zoneOptima takes minutes once; it is kept in the user's cache folder.
func (a *app) zoneOptima(ctx context.Context, runs []tick.ZoneRun,
	tell func(string, int, int)) ([]money.Amount, error) {
	cache := ""
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "scrimp")
	}
	var mu sync.Mutex
	optima, err := tick.ZoneOptima(ctx, runs, cache, func(done, of int) {
		mu.Lock()
		defer mu.Unlock()
		tell(replay.Optimum, done, of)
	})
	if errors.Is(err, tick.ErrNotKept) {
		a.Notef("%v\n", err)
		return optima, nil
	}
	return optima, err
}

func readZones(availability, prices string) ([]tick.ZoneWindow, error) {
	af, err := os.Open(availability)
	if err != nil {
		return nil, fmt.Errorf("read --availability: %w", err)
	}
	defer func() { _ = af.Close() }()
	pf, err := os.Open(prices)
	if err != nil {
		return nil, fmt.Errorf("read --prices: %w", err)
	}
	defer func() { _ = pf.Close() }()
	return tick.ReadZones(availability, af, prices, pf)
}

// scores prints the table of a benchmark; left is how many pairs of group and window it lacks.
func (a *app) scores(scores []replay.Score, left int, gang gangFlags) error {
	if a.JSON {
		return a.Print(struct {
			Policies []replay.Score `json:"policies"`
			LeftOut  int            `json:"left_out,omitempty"`
			Nodes    int            `json:"nodes"`
			Alone    bool           `json:"alone,omitempty"`
		}{scores, left, gang.nodes, gang.alone})
	}
	a.Printf("%s%s", gang.says(a.Place().Width), show.Scores(scores, a.Place()))
	return nil
}

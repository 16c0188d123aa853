package benchmark

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/show/simulation"
	"scrimp/internal/lib/draw"
	"scrimp/internal/sim/replay"
	"scrimp/internal/sim/tick"
)

// PolicyFlag adds --policy and returns a function for the selected names, in table order.
func PolicyFlag(cmd *cobra.Command) func() ([]string, error) {
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

// gangFlags set the number of machines of a benchmark's job, and how they are lost.
type gangFlags struct {
	nodes int
	alone bool
}

func (f *gangFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.nodes, "nodes", 1,
		fmt.Sprintf("how many machines, `N`, the job has at once, 1 to %d", tick.MostNodes))
	f.addAlone(cmd)
}

func (f *gangFlags) addAlone(cmd *cobra.Command) {
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

// says returns the caption of the table for a job on several machines.
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

func (a *app) deadlineCmd() *cobra.Command {
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
	names := PolicyFlag(cmd)
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

// scores prints a benchmark's table; left is the number of omitted pairs of group and window.
func (a *app) scores(scores []replay.Score, left int, gang gangFlags) error {
	if a.JSON {
		return a.Print(scoresResult(scores, left, gang))
	}
	a.Printf("%s%s", gang.says(a.Place().Width), simulation.Scores(scores, a.Place()))
	return nil
}

// scoresResult returns the JSON of a benchmark's table.
func scoresResult(scores []replay.Score, left int, gang gangFlags) any {
	return struct {
		Policies []replay.Score `json:"policies"`
		LeftOut  int            `json:"left_out,omitempty"`
		Nodes    int            `json:"nodes"`
		Alone    bool           `json:"alone,omitempty"`
	}{scores, left, gang.nodes, gang.alone}
}

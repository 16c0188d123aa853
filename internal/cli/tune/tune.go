// Package tune holds the commands that search for hyper-parameters, show and export searches, and compare searchers on
// recorded curves.
package tune

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/work/study"
	"scrimp/internal/work/tune/replay"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	tune := a.tuneCmd()
	tune.AddCommand(a.simulateCmd(), a.exportCmd(), a.askCmd(), a.tellCmd(), a.bestCmd(), a.searchesCmd(), a.removeCmd())
	return []*cobra.Command{tune}
}

// maxSeeds bounds --seeds.
const maxSeeds = 10_000

// simulateFlags holds the flags of scrimp tune simulate.
type simulateFlags struct {
	tables    []string
	searchers []string
	seeds     int
	end       replay.End
}

// stops reports whether searches may stop by themselves.
func (f *simulateFlags) stops() bool { return f.end.PointUSD > 0 || f.end.MinGain > 0 }

func (a *app) simulateCmd() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate --table FOLDER [--searcher NAME]",
		Short: "Compare searchers on recorded learning curves",
		Long: `Replays searches with four workers on tables of recorded learning curves, and compares what they find for the
same budget. Nothing is trained or rented, and no server is needed.

A table is a folder with space.json (parameters, budget_seconds, switch_seconds, price_usd_per_worker_hour),
configs.csv (config_id and a column for each parameter) and curves.csv (config_id,epoch,metric,seconds). The
metric is minimised. Further folders and names of searchers may follow without a flag.

r is the distance from the best value so far to the best of the table: 1 at the best quarter of the
configurations and above, 0 at the best. R10 to R100 are r when 10 to 100 % of the budget is spent. AUC is the
mean of r over the budget, TO1 the share of the budget at which r is 0.01 or less. Smaller is better.

With --point-value or --min-gain, each search stops by itself where going on does not pay, by the rule of
plateau in a study file. STOP REGRET is how much less its net value is (value of the gain less spend) than at the
best moment, as a share of the latter.

Exit status: 0 done, 1 a table cannot be read.`,
		Example: `  scrimp tune simulate --table tables/mnist --searcher asha-stop,default
  scrimp tune simulate --table tables/* --seeds 100 --json`,
		Args: func(_ *cobra.Command, args []string) error { return f.check(args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return a.simulate(cmd.Context(), f) },
	}
	cmd.Flags().StringSliceVar(&f.tables, "table", nil, "`folder` of a table; repeat it, or separate with commas"+
		" (default: the folders named without a flag)")
	cmd.Flags().StringSliceVar(&f.searchers, "searcher", nil, "`names` of searchers: "+
		strings.Join(replay.Names(), ", ")+" (default all)")
	cmd.Flags().IntVar(&f.seeds, "seeds", 30,
		fmt.Sprintf("how many searches, `N`, with seeds from 0 on, 1 to %d", maxSeeds))
	cmd.Flags().Float64Var(&f.end.PointUSD, "point-value", 0,
		"`USD` that a point of r is worth: searches may stop by themselves (default: they spend the budget)")
	cmd.Flags().Float64Var(&f.end.MinGain, "min-gain", 0,
		"`GAIN` of the metric per dollar that pays, in place of --point-value (default: they spend the budget)")
	cmd.Flags().IntVar(&f.end.Patience, "patience", 0, fmt.Sprintf("`N` consecutive reports with a smaller expected gain "+
		"stop a search, 1 to %d (default: those of 15 %% of the spend)", study.MaxPatience))
	_ = cmd.MarkFlagDirname("table")
	_ = cmd.RegisterFlagCompletionFunc("searcher",
		cobra.FixedCompletions(replay.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// check splits the arguments into tables and searchers, and refuses what cannot be played.
func (f *simulateFlags) check(args []string) error {
	for _, arg := range args {
		if slices.Contains(replay.Names(), arg) {
			f.searchers = append(f.searchers, arg)
		} else {
			f.tables = append(f.tables, arg)
		}
	}
	switch {
	case len(f.tables) == 0:
		return fmt.Errorf("give --table FOLDER, with space.json, configs.csv and curves.csv in it")
	case f.seeds < 1 || f.seeds > maxSeeds:
		return fmt.Errorf("--seeds %d: give 1 to %d", f.seeds, maxSeeds)
	case !(f.end.PointUSD >= 0 && f.end.PointUSD <= 1e12):
		return fmt.Errorf("--point-value %g: give 0 to 1e12", f.end.PointUSD)
	case !(f.end.MinGain >= 0 && f.end.MinGain <= 1e12):
		return fmt.Errorf("--min-gain %g: give 0 to 1e12", f.end.MinGain)
	case f.end.MinGain > 0 && f.end.PointUSD > 0:
		return fmt.Errorf("--min-gain and --point-value say the same in two ways: give one of them")
	case f.end.Patience < 0 || f.end.Patience > study.MaxPatience:
		return fmt.Errorf("--patience %d: give 1 to %d", f.end.Patience, study.MaxPatience)
	case f.end.Patience > 0 && !f.stops():
		return fmt.Errorf("--patience needs --min-gain or --point-value beside it")
	}
	for _, s := range f.searchers {
		if !slices.Contains(replay.Names(), s) {
			return fmt.Errorf("--searcher %q is not one of %s", s, strings.Join(replay.Names(), ", "))
		}
	}
	if len(f.searchers) == 0 {
		f.searchers = replay.Names()
	}
	f.searchers, f.tables = unique(f.searchers), unique(f.tables)
	return nil
}

// unique returns the list without duplicates.
func unique(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// read reads the table of a folder.
func read(folder string) (*replay.Table, error) {
	var files [3]*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close() // closing an unopened file is an error, too
		}
	}()
	for i, name := range []string{"space.json", "configs.csv", "curves.csv"} {
		f, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("read --table: %w", err)
		}
		files[i] = f
	}
	return replay.Read(filepath.Clean(folder), files[0], files[1], files[2])
}

package commit

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/show/purchase"
	"scrimp/internal/work/commit"
)

// insured holds the points of the curve: probabilities of a fall within twelve months.
var insured = []float64{0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5}

func (a *app) simulateCmd() *cobra.Command {
	var f flags
	var discount string
	var history int
	var curve bool
	cmd := &cobra.Command{
		Use: "simulate --demand FILE --discount SHARE", Short: "Simulate a year or more of purchases on recorded demand",
		Long: `Simulates purchases on recorded demand: at the start of each month the planner gets the hours before it, and
nothing else. Cost is exact: the demand above the commitments at 1 an hour, and each committed hour at
1 - discount, used or not.

It then repeats the simulation with demand that falls on the 2nd day of a month, for each of the last twelve
months. --insure says against how likely a fall the plan insures, and --curve shows what each degree costs and
saves. HINDSIGHT is the best level of each month, chosen after the fact: no plan is cheaper.

With --json: purchases (region, month_start_hour, units), regions and mean, curve. Exit status: 0 done, 1 the file
or a flag cannot be used.`,
		Example: `  scrimp commit simulate --demand demand.csv --discount 28%
  scrimp commit simulate --demand demand.csv --discount 0.40 --insure 20% --curve --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := f.policy()
			if err != nil {
				return err
			}
			n, err := price(discount)
			if err != nil {
				return err
			}
			p.Price = commit.Share(n)
			if history < 1 || history > 120 {
				return fmt.Errorf("--history %d: give 1 to 120 months", history)
			}
			d, err := a.read(cmd, f)
			if err != nil {
				return err
			}
			return a.simulate(cmd.Context(), d, p, f.demand, history, curve)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&discount, "discount", "", "`share` by which a committed hour is cheaper: 28% or 0.28")
	cmd.Flags().IntVar(&history, "history", 12, "`months` of demand before the first purchase")
	cmd.Flags().BoolVar(&curve, "curve", false, "show what more and less insurance costs and saves (default: only that "+
		"of --insure)")
	_ = cmd.MarkFlagRequired("discount")
	return cmd
}

func (a *app) simulate(ctx context.Context, d commit.Demand, p commit.Policy, file string, history int,
	curve bool) error {
	first, end := d.Calendar.Months(d.Hours)
	if first += history; first >= end {
		return fmt.Errorf("%s: has %d whole months, and the first purchase comes after %d (--history): give more hours, or "+
			"fewer months of history", file, end-first+history, history)
	}
	play := func(insure float64) (purchase.Replay, error) {
		p.Insure = insure
		var results []commit.Result
		for _, r := range d.Regions {
			if ctx.Err() != nil {
				return purchase.Replay{}, context.Cause(ctx)
			}
			results = append(results, p.Simulate(r, d.Calendar, first, end, true))
		}
		return purchase.ReplayOf(p, results, d.Calendar, first, end), nil
	}
	r, err := play(p.Insure)
	if err != nil {
		return err
	}
	for _, insure := range insured {
		if !curve {
			break
		}
		one, err := play(insure)
		if err != nil {
			return err
		}
		r.Curve = append(r.Curve, purchase.Point{Insure: insure, Cost: one.Mean.All.Cost, Falls: one.Mean.Falls.Cost})
	}
	return a.Show(r, r.Text(a.Place()))
}

package commit

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/show/purchase"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/commit/blocks"
)

func (a *app) blocksCmd() *cobra.Command {
	var f flags
	var price, onDemand string
	var machines int64
	var longest int
	cmd := &cobra.Command{
		Use:   "blocks --demand FILE --price DOLLARS --on-demand DOLLARS",
		Short: "Plan capacity blocks: machines paid in advance for some days",
		Long: `Finds the capacity blocks that make a planned demand cheapest, with on-demand machines for the rest. A block is
paid in advance, for all its machines and days. The rules are those of Amazon's Capacity Blocks for ML: a block starts
and ends at 11:30 UTC, has 1 to 14 days or a multiple of 7 up to 182, and loses its machines 30 minutes before its end.

--demand holds the machines that you will need in each hour: what you know of the coming weeks, or the hours so far.
The plan is the cheapest for exactly this demand; it buys nothing, and does not know which blocks are for sale.

With --json: one object for each region. Exit status: 0 done, 1 the file or a flag cannot be used.`,
		Example: "  scrimp commit blocks --demand plan.csv --price 31.46 --on-demand 55.04",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := blocks.Terms{Machines: machines, Longest: longest}
			for _, p := range []struct {
				flag, text string
				to         *money.Rate
			}{{"price", price, &t.Block}, {"on-demand", onDemand, &t.OnDemand}} {
				r, err := hourly(p.text)
				if err != nil {
					return fmt.Errorf("--%s: %w", p.flag, err)
				}
				*p.to = r
			}
			switch {
			case t.Block >= t.OnDemand:
				return fmt.Errorf("--price %s is not below --on-demand %s: no block pays", price, onDemand)
			case machines < 1 || machines > blocks.MostMachines:
				return fmt.Errorf("--machines %d: give 1 to %d", machines, blocks.MostMachines)
			case longest < 1 || longest > blocks.LongestDays:
				return fmt.Errorf("--longest %d: give 1 to %d days", longest, blocks.LongestDays)
			}
			d, err := a.read(cmd, f)
			if err != nil {
				return err
			}
			for i, r := range d.Regions {
				v := purchase.BlocksOf(r.Name, t.Plan(r, d.Calendar.Zero), t)
				if !a.JSON && i > 0 {
					a.Printf("\n")
				}
				if err := a.Show(v, v.Text(a.Place())); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.addDemand(cmd)
	cmd.Flags().StringVar(&price, "price", "", "`dollars` an hour of one machine in a block")
	cmd.Flags().StringVar(&onDemand, "on-demand", "", "`dollars` an hour of one machine on demand")
	cmd.Flags().Int64Var(&machines, "machines", blocks.MostMachines, "`machines` in blocks at once, 1 to 256")
	cmd.Flags().IntVar(&longest, "longest", blocks.LongestDays, "`days` of the longest block, 1 to 182")
	_ = cmd.MarkFlagRequired("price")
	_ = cmd.MarkFlagRequired("on-demand")
	return cmd
}

// mostHourly bounds the price of an hour of a machine.
const mostHourly = 1_000_000

// hourly parses a price of an hour above zero.
func hourly(text string) (money.Rate, error) {
	r, err := money.ParseRate(strings.TrimPrefix(text, "$"))
	switch {
	case err != nil:
		return 0, err
	case r <= 0 || r.Float() > mostHourly:
		return 0, fmt.Errorf("%s is not above 0 and at most %d", text, mostHourly)
	}
	return r, nil
}

// Package commit holds the commands that plan commitments.
package commit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/work/commit"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use: "commit", Short: "Plan reserved machines, savings plans and capacity blocks", GroupID: command.GroupMoney,
		Long: `Says how many machines to commit to, and when, from the demand of each hour. A commitment (a reserved machine,
a savings plan, committed use) costs less than on-demand and is owed for its whole term, used or not.

A demand file is CSV: hour, then a column for each region with the machines in use. One unit is one machine
of any type. Hours follow each other without a gap: they are numbers from 0, or times in UTC.`,
		Example: `  scrimp commit demand growth > demand.csv
  scrimp commit simulate --demand demand.csv --discount 28% --curve
  scrimp commit plan --demand demand.csv --discount 28%
  scrimp commit blocks --demand plan.csv --price 31.46 --on-demand 55.04`,
	}
	cmd.AddCommand(a.simulateCmd(), a.planCmd(), a.blocksCmd(), a.historyCmd(), a.demandCmd())
	return []*cobra.Command{cmd}
}

// flags holds the flags about the purchase and the insured fall of demand.
type flags struct {
	demand, start, insure, fall string
	years                       int
}

func (f *flags) add(cmd *cobra.Command) {
	f.addDemand(cmd)
	cmd.Flags().StringVar(&f.insure, "insure", "10%", "`chance` that demand falls within twelve months: more buys less, "+
		"and at more different times; 0 to 99%")
	cmd.Flags().StringVar(&f.fall, "fall", "50%", "`share` of the demand that this fall takes, for good")
	cmd.Flags().IntVar(&f.years, "years", 1, "`term` of a purchase: 1 or 3 years")
}

func (f *flags) addDemand(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.demand, "demand", "", "CSV `file` of the machines in use in each hour")
	cmd.Flags().StringVar(&f.start, "start", defaultStart, "`day` of hour 0, where the file numbers its hours")
	_ = cmd.MarkFlagRequired("demand")
	_ = cmd.MarkFlagFilename("demand", "csv")
}

// defaultStart is the first day of the public benchmark, whose file numbers its hours.
const defaultStart = "2021-02-01"

// policy returns the policy without its price.
func (f *flags) policy() (p commit.Policy, err error) {
	if f.years != 1 && f.years != 3 {
		return p, fmt.Errorf("--years %d: terms are sold for 1 and 3 years", f.years)
	}
	insure, err := commit.ParseShare(f.insure, 0, commit.One*99/100)
	if err != nil {
		return p, fmt.Errorf("--insure: %w", err)
	}
	fall, err := commit.ParseShare(f.fall, 0, commit.One)
	if err != nil {
		return p, fmt.Errorf("--fall: %w", err)
	}
	return commit.Policy{Months: 12 * f.years, Insure: float64(insure) / commit.One, Fall: fall}, nil
}

// price returns the price of a committed hour relative to on-demand, in ten thousandths.
func price(discount string) (int64, error) {
	d, err := commit.ParseShare(discount, 1, commit.One-1)
	if err != nil {
		return 0, fmt.Errorf("--discount: %w", err)
	}
	return commit.One - d, nil
}

// mostEmpty bounds the regions that a note names.
const mostEmpty = 10

// read reads the demand file.
func (a *app) read(cmd *cobra.Command, f flags) (d commit.Demand, err error) {
	zero, err := time.Parse(time.DateOnly, f.start)
	if err != nil || zero.Year() < 1970 || zero.Year() > 9000 {
		return d, fmt.Errorf("--start %q is not a day: write one such as %s", f.start, defaultStart)
	}
	in, err := os.Open(f.demand)
	if err != nil {
		return d, fmt.Errorf("read --demand: %w", err)
	}
	defer func() { _ = in.Close() }()
	d, err = commit.ReadDemand(filepath.Base(f.demand), in, zero)
	if err != nil {
		return d, err
	}
	if !d.Numbered && cmd.Flags().Changed("start") {
		return d, fmt.Errorf("--start has no effect: %s has the time of each hour", filepath.Base(f.demand))
	}
	if n := len(d.Empty); n > 0 {
		more := ""
		if n > mostEmpty {
			more = fmt.Sprintf(" and %d more", n-mostEmpty)
		}
		a.Notef("%s: left out, because the demand is zero in every hour: %s%s\n", filepath.Base(f.demand),
			strings.Join(d.Empty[:min(n, mostEmpty)], ", "), more)
	}
	if d.Numbered && !cmd.Flags().Changed("start") {
		a.Notef("%s numbers its hours: hour 0 is the start of %s (--start)\n", filepath.Base(f.demand), f.start)
	}
	return d, nil
}

func (a *app) demandCmd() *cobra.Command {
	var months int
	var base int64
	var seed uint64
	cmd := &cobra.Command{
		Use: "demand SHAPE", Short: "Write made-up demand, to try plans on",
		Long: `Writes a demand file of made-up hours to stdout, the same for the same seed. Shapes: growth, season, fall,
flat, batch, from-zero.` + command.PlainExit,
		Example: "  scrimp commit demand growth > demand.csv",
		Args:    command.Takes("SHAPE"),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case months < 1 || months > 120:
				return fmt.Errorf("--months %d: give 1 to 120", months)
			case base < 1 || base > 1_000_000:
				return fmt.Errorf("--base %d: give 1 to 1000000", base)
			}
			zero, _ := time.Parse(time.DateOnly, defaultStart)
			cal := commit.Calendar{Zero: zero}
			r, err := commit.Generate(args[0], cal.Month(months), base, seed)
			if err != nil {
				return err
			}
			return a.write(commit.Demand{Calendar: cal, Hours: len(r.Units), Regions: []commit.Region{r}})
		},
	}
	cmd.Flags().IntVar(&months, "months", 36, "how many `months`, 1 to 120")
	cmd.Flags().Int64Var(&base, "base", 100, "`machines` that the shape begins with")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "`number` that the noise follows from")
	return cmd
}

// Package export holds the commands that write costs and prices to files for other tools.
package export

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/decide/focus"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// flags holds the flags of all exports.
type flags struct {
	since, until, to string
	force            bool
}

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{Use: "export", Short: "Write costs and prices to files of other tools",
		Args: command.Takes(), GroupID: command.GroupMoney,
		Long: "Writes what was spent, or the catalogue, to a file that other tools read: FOCUS for finance and FinOps " +
			"tools, CSV for spreadsheets. The name's ending says the form: .csv, .csv.gz or .parquet.\n\n" +
			"export writes beside the file and renames at the end, so the file is whole or not there. It replaces no file " +
			"unless you say --force." + command.PlainExit,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.focusCmd(), a.csvCmd(), a.pricesCmd())
	return []*cobra.Command{cmd}
}

func (f *flags) add(cmd *cobra.Command, forms string) {
	cmd.Flags().StringVarP(&f.to, "output", "o", "", "`file` to write: "+forms+"; - is standard output, in CSV")
	_ = cmd.MarkFlagRequired("output")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace the file where there is one (default: refuse)")
}

func (f *flags) addSpan(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.since, "since", "", "`time` from which: a month, a day or a whole hour in UTC, as in "+
		"2026-10, 2026-10-15 or 2026-10-15T08:00:00Z (default: from the beginning)")
	cmd.Flags().StringVar(&f.until, "until", "", "`time` up to which, written alike (default: until now)")
}

func (f *flags) query() url.Values { return url.Values{"since": {f.since}, "until": {f.until}} }

const spanHelp = "--since and --until choose the time that was paid for, not when it was booked: spans that meet " +
	"add up. The costs of running machines are in the file up to this second, as estimates."

func (a *app) focusCmd() *cobra.Command {
	var f flags
	var version string
	cmd := &cobra.Command{Use: "focus", Short: "Write costs as FOCUS, the FinOps Open Cost and Usage Specification",
		Args: command.Takes(),
		Long: "Writes what was spent as the data set CostAndUsage of FOCUS (focus.finops.org), which FinOps tools read. " +
			"A row is what one machine cost one job in one span with one price and one outcome. Costs add up to the " +
			"ledger exactly. Columns of scrimp's own begin with x_ and come last: job, attempt, group, part, outcome " +
			"(useful, lost, start-up, idle, open) and confidence (estimated, accrued, billed).\n\n" + spanHelp +
			command.PlainExit,
		Example: "  scrimp export focus -o costs.csv\n" +
			"  scrimp export focus --version 1.4 --since 2026-10 --until 2026-11 -o october.parquet",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			v, err := versionOf(version)
			if err != nil {
				return err
			}
			var columns []column
			for _, k := range focus.Columns(v) {
				columns = append(columns, column{k.Name, k.Kind, k.Null})
			}
			q := f.query()
			q.Set("version", v.String())
			return a.fetch(ctx, c, &f, client.Path("/v1/export/focus", q), columns)
		})}
	cmd.Flags().StringVar(&version, "version", focus.V12.String(), "`version` of the specification: "+focus.Versions)
	_ = cmd.RegisterFlagCompletionFunc("version", command.Words("1.2", "1.3", "1.4"))
	f.add(cmd, "FILE.csv, FILE.csv.gz or FILE.parquet")
	f.addSpan(cmd)
	return cmd
}

// versionOf parses --version. The flag has a default, so it is empty only if the user wrote that.
func versionOf(text string) (focus.Version, error) {
	if text == "" {
		return 0, errors.New("--version is empty: write " + focus.Versions)
	}
	return focus.ParseVersion(text)
}

func (a *app) csvCmd() *cobra.Command {
	var f flags
	cmd := &cobra.Command{Use: "csv", Short: "Write costs as a table for spreadsheets", Args: command.Takes(),
		Long: "Writes what was spent as a plain table: when, whose, what was bought, for how much, and what became of it. " +
			"Costs are exact to 1e-12; hours have as many decimals as bring hours × price within 1e-9 of the cost. A name " +
			"that a spreadsheet would take for a formula, a number or a date begins with a quote.\n\n" + spanHelp +
			command.PlainExit,
		Example: "  scrimp export csv -o costs.csv\n  scrimp export csv --since 2026-10 -o - | head",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			return a.fetch(ctx, c, &f, client.Path("/v1/export/costs", f.query()), nil)
		})}
	f.add(cmd, "FILE.csv or FILE.csv.gz")
	f.addSpan(cmd)
	return cmd
}

// fetch writes a CSV file from the server; columns is nil if Parquet is not supported.
func (a *app) fetch(ctx context.Context, c *command.Client, f *flags, path string, columns []column) error {
	to, err := a.target(f, columns)
	if err != nil {
		return err
	}
	r, err := c.Request(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	return to.write(ctx, &answer{r.Body})
}

var errUnnamed = errors.New("name the file to write, as in -o costs.csv")

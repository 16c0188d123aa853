package share

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/charge"
	"scrimp/internal/lib/money"
)

func (a *app) chargebackCmd() *cobra.Command {
	var month, rule string
	var asCSV bool
	cmd := &cobra.Command{Use: "chargeback", Short: "Divide what a month cost among teams",
		Args: command.Takes(), GroupID: command.GroupMoney,
		Long: "Writes a statement for each team: what it cost by itself (useful, lost, start-up, idle), its share of what " +
			"belongs to no team (idle machines, unused reservations, unattributed cost, fees), what is billed, what it saved " +
			"against on-demand, and what a run, a successful run and a GPU-hour cost. The statements, and what is left of " +
			"shared cost, add up to the month exactly.\n\n" +
			"--rule says how shared cost is divided: proportional (to GPU-hours; to machine hours where no GPU ran), even, or " +
			"fixed:FILE. FILE has a line for each team, as in \"vision: 60\". Currencies are never added up. The statement of " +
			"a month that is not over is up to now. What is unknown is \"-\", and empty with --csv." + command.PlainExit,
		Example: "  scrimp chargeback\n  scrimp chargeback --month 2026-10 --rule even\n" +
			"  scrimp chargeback --month 2026-10 --rule fixed:shares.yaml --csv > october.csv",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			if asCSV && a.JSON {
				return errors.New("--csv and --json exclude each other: give one")
			}
			kind, shares, err := ruleOf("--rule", rule)
			if err != nil {
				return err
			}
			v, err := c.Chargeback(ctx, month, kind, shares)
			switch {
			case err != nil:
				return c.Said(ctx, err)
			case asCSV:
				return writeCSV(a, v)
			}
			return a.Show(v, show.Chargeback(v, a.Place()))
		})}
	cmd.Flags().StringVar(&month, "month", "", "`month` in UTC, such as 2026-10 (default: this month)")
	cmd.Flags().StringVar(&rule, "rule", "proportional", "`how` shared cost is divided: proportional, even or fixed:FILE")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "write a table for spreadsheets, with exact amounts (default: a text)")
	cmd.AddCommand(a.feesCmd(), a.feeCmd())
	return cmd
}

// writeCSV writes a table in which a spreadsheet reads no name as a formula.
func writeCSV(a *app, v api.Chargeback) error {
	out := csv.NewWriter(a.Out)
	for i, row := range v.Table() {
		for at := range row[:api.NameColumns] {
			if i > 0 && at > 0 {
				row[at] = charge.TextCell(row[at])
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// mostShares bounds the file of a fixed rule, in bytes.
const mostShares = 1 << 20

// ruleOf parses the rule of a flag and reads the file of a fixed one.
func ruleOf(flag, text string) (kind string, shares []string, err error) {
	kind, file, named := strings.Cut(text, ":")
	switch {
	case kind != "fixed" && named:
		return "", nil, fmt.Errorf("%s %.60q: only fixed has a file: write proportional, even or fixed:FILE", flag, text)
	case kind != "fixed":
		return kind, nil, nil
	case file == "":
		return "", nil, fmt.Errorf("%s fixed needs a file with the shares: write fixed:FILE", flag)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return "", nil, fmt.Errorf("read the shares: %w", err)
	}
	if len(body) > mostShares {
		return "", nil, fmt.Errorf("%s has more than 1 MiB: write a line for each team, as in \"vision: 60\"", file)
	}
	weights := map[string]yaml.Node{}
	if err := yaml.NewDecoder(bytes.NewReader(body)).Decode(&weights); err != nil {
		return "", nil, fmt.Errorf("%s: write a line for each team, as in \"vision: 60\": %w", file, err)
	}
	for _, team := range slices.Sorted(maps.Keys(weights)) {
		n := weights[team]
		if n.Kind != yaml.ScalarNode {
			return "", nil, fmt.Errorf("%s:%d: the share of %s is not a number: write one, as in \"vision: 60\"", file, n.Line,
				team)
		}
		shares = append(shares, team+"="+n.Value)
	}
	return kind, shares, nil
}

func (a *app) feesCmd() *cobra.Command {
	return &cobra.Command{Use: "fees", Short: "List shared costs that no machine has", Args: command.Takes(),
		Long: "Lists subscriptions and other fees that every month has, and that scrimp chargeback divides among teams." +
			command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			list, err := c.Fees(ctx)
			if err != nil {
				return err
			}
			return command.ShowEach(a.App, list, show.Fees(list, a.Place()))
		})}
}

func (a *app) feeCmd() *cobra.Command {
	f := feeFlags{}
	cmd := &cobra.Command{Use: "fee NAME AMOUNT", Short: "Make, change or remove a shared cost of every month",
		Args: command.Takes("NAME", "AMOUNT"),
		Long: "Sets what a subscription or another fee costs a month. scrimp chargeback divides it among teams by the rule " +
			"of --spread, or by that of the statement. With --since, months before keep what it cost then; without, all " +
			"months change. The amount 0 ends it." + command.PlainExit,
		Example: "  scrimp chargeback fee tracking 450\n" +
			"  scrimp chargeback fee support 99.50 --currency EUR --since 2026-10 --until 2027-09\n" +
			"  scrimp chargeback fee tracking 0 --since 2027-01",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.setFee(ctx, c, args[0], args[1], f)
		})}
	f.add(cmd)
	return cmd
}

// addCmd returns scrimp costs add, which is scrimp chargeback fee with a price a month.
func (a *app) addCmd() *cobra.Command {
	f := feeFlags{}
	cmd := &cobra.Command{Use: "add NAME AMOUNT", Short: "Add a fixed cost of every month, such as a subscription",
		Args: command.Takes("NAME", "AMOUNT"),
		Long: "Adds what no machine costs: a subscription, a licence or the surcharge of a managed platform, a " +
			"month. AMOUNT is such as $200/month. scrimp chargeback divides it among teams by --spread: " +
			"proportional (to GPU-hours), even, or fixed:FILE, a file with a line for each team, as in 'vision: " +
			"60'. A cost of one month has that month as --since and --until, and a name that exists gets the new amount. " +
			"scrimp chargeback fees lists such costs, and the amount 0 with --since ends one. This needs the " +
			"role admin of all teams." + command.PlainExit,
		Example: "  scrimp costs add \"MLflow hosting\" '$200/month' --since 2026-11 --spread even\n" +
			"  scrimp costs add migration '$500' --since 2026-11 --until 2026-11\n" +
			"  scrimp costs add \"MLflow hosting\" 0 --since 2027-05",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.setFee(ctx, c, args[0], args[1], f)
		})}
	f.add(cmd)
	return cmd
}

// feeFlags are the flags of a fee.
type feeFlags struct{ currency, since, until, spread string }

func (f *feeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.currency, "currency", "USD", "`code` of the currency")
	cmd.Flags().StringVar(&f.since, "since", "", "first `month`, such as 2026-10 or 2026-10-01 (default: from the "+
		"beginning)")
	cmd.Flags().StringVar(&f.until, "until", "", "last `month`, such as 2027-09 (default: for ever)")
	cmd.Flags().StringVar(&f.spread, "spread", "", "`how` it is divided: proportional, even or fixed:FILE (default: by "+
		"the rule of the statement)")
}

// fee returns the fee that the arguments describe.
func (f *feeFlags) fee(name, amount string) (v api.Fee, err error) {
	v = api.Fee{Name: name, Currency: money.Currency(f.currency), Until: f.until}
	if v.Since, err = monthOf(f.since); err != nil {
		return v, err
	}
	text := strings.TrimSuffix(strings.TrimSuffix(amount, "/month"), "/mo")
	if dollars, is := strings.CutPrefix(text, "$"); is {
		if text = dollars; f.currency != "USD" {
			return v, fmt.Errorf("AMOUNT %.40q is in dollars, and --currency is %.10q: leave one of the two out", amount,
				f.currency)
		}
	}
	if v.Amount, err = money.Parse(text); err != nil {
		return v, fmt.Errorf("AMOUNT: %w: write what a month costs, such as 450, 99.50 or $200/month", err)
	}
	if f.spread != "" {
		v.Spread, v.Shares, err = ruleOf("--spread", f.spread)
	}
	return v, err
}

// monthOf returns a month that may be written as its first day.
func monthOf(text string) (string, error) {
	month, first := strings.CutSuffix(text, "-01")
	if !first || strings.Count(text, "-") != 2 {
		month = text
	}
	if strings.Count(month, "-") == 2 {
		return "", fmt.Errorf("--since %.40q: a fee counts from the first day of a month: write one such as 2026-10", text)
	}
	return month, nil
}

// feeDone says what has changed: in which months the fee counts, and what it replaces.
func feeDone(f api.Fee, before []api.Fee) string {
	var text string
	switch until := f.Until; {
	case f.Amount.IsZero() && f.Since == "":
		text = "The fee " + f.Name + " is removed from all months, past months included."
	case f.Amount.IsZero():
		text = "The fee " + f.Name + " ends before " + f.Since + "."
	default:
		text = "The fee " + f.Name + " costs " + money.Short(f.Amount, f.Currency) + " in "
		switch {
		case f.Since == "" && until == "":
			text += "every month, past months included."
		case f.Since == until:
			text += until + " only."
		case f.Since == "":
			text += "every month until " + until + ", past months included."
		case until == "":
			text += "every month from " + f.Since + " on."
		default:
			text += "every month from " + f.Since + " until " + until + "."
		}
	}
	for _, o := range before {
		if !f.Amount.IsZero() && o.Name == f.Name && (o.Until == "" || o.Until >= f.Since) {
			text += " There it replaces " + money.Short(o.Amount, o.Currency) + " a month."
			break
		}
	}
	return text
}

func (a *app) setFee(ctx context.Context, c *command.Client, name, amount string, flags feeFlags) error {
	f, err := flags.fee(name, amount)
	if err != nil {
		return err
	}
	before, err := c.Fees(ctx)
	if err != nil {
		return c.Said(ctx, err)
	}
	if err := c.SetFee(ctx, f); err != nil {
		return c.Said(ctx, err)
	}
	done := feeDone(f, before)
	return a.Showf(map[string]string{"done": done}, "%s\n", done)
}

// Package review holds the command that reviews the spending of a month on one page.
package review

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	var text string
	cmd := &cobra.Command{Use: "review", Short: "Review the spending of a month on one page", Args: command.Takes(),
		GroupID: command.GroupMoney,
		Long: "Writes a page for a monthly meeting: spending against budgets and the forecast of the month's end, " +
			"estimates against what came out, the ten dearest jobs, anomalies, proposals and what they gave, what the " +
			"recommendations that you follow have saved, lost and idle time, how much of the spending has a " +
			"team, a project and the other tags, how mature the handling of cost is (crawl, walk or run, as in the maturity " +
			"model of the FinOps Foundation) with the evidence, and at most three next actions, by the dollars that they " +
			"are about. The dashboard has the same page under Costs." +
			"\n\nSpending is that of the ledger, and of machines that run up to now; fees are in scrimp chargeback. The " +
			"figures are those of the teams that you may see. Currencies are never added up. What is unknown is \"-\", and " +
			"null with --json. Anomalies are known for 90 days." + command.PlainExit,
		Example: "  scrimp review\n  scrimp review --month 2026-10 --json",
		PreRunE: func(*cobra.Command, []string) error { return checkMonth(text) },
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			v, err := c.MonthReview(ctx, text)
			if err != nil {
				return c.Said(ctx, err)
			}
			return a.Show(v, page(v).text(a.Place()))
		})}
	cmd.Flags().StringVar(&text, "month", "", "`month` in UTC, such as 2026-10 (default: this month)")
	return []*cobra.Command{cmd}
}

// checkMonth refuses the value of --month that is no month. The server refuses months that have not begun.
func checkMonth(text string) error {
	if _, err := time.Parse("2006-01", text); text != "" && err != nil {
		return fmt.Errorf("--month %.40q is not a month: write YYYY-MM, such as 2026-10", text)
	}
	return nil
}

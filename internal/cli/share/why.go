package share

import (
	"context"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/spending"
)

func (a *app) whyCmd() *cobra.Command {
	var by string
	cmd := &cobra.Command{Use: "why BEFORE AFTER", Short: "Say why the cost of two periods differs",
		Args:    command.Takes("BEFORE", "AFTER"),
		GroupID: command.GroupMoney,
		Long: "Splits the difference of two periods' cost into parts that add up to it exactly: volume (work done), price " +
			"(of the same machine, bought in the same way), mix (other machines, or more of them spot or on-demand), " +
			"efficiency (machine time for the same work), failures (lost work), waiting (start-up, idle machines and " +
			"unused reservations), and unmatched (disks, transfer, fees: what has no machine time). It lists the ten jobs " +
			"whose cost changed the most. The parts of all costs do not depend on --by; each line is split by itself, and " +
			"(between) is what the lines' parts lack.\n\nA period is a month, a day, or two times with two dots between, " +
			"in UTC: 2026-10, " +
			"2026-10-15, 2026-10-01..2026-10-15. Times are whole hours, as in " +
			"2026-10-15T08:00:00Z..2026-10-15T12:00:00Z. A cost is in the period that was paid for." + command.PlainExit,
		Example: "  scrimp why 2026-10 2026-11\n  scrimp why 2026-10 2026-11 --by project --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			v, err := c.Why(ctx, args[0], args[1], by)
			if err != nil {
				return c.Said(ctx, err)
			}
			return a.Show(v, spending.Why(v, args[0], args[1], a.Place()))
		})}
	cmd.Flags().StringVar(&by, "by", "team", "one line each `what`, as in scrimp costs: team, project, user, …")
	return cmd
}

package share

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/decide/budget"
	"scrimp/internal/job/spec"
	"scrimp/internal/view/convert"
)

func (a *app) budgetsRateCmd() *cobra.Command {
	var w window
	cmd := &cobra.Command{Use: "rate DOLLARS", Short: "Limit the dollars an hour that machines cost at once",
		Args: command.Takes("DOLLARS"),
		Long: "Sets the most that the machines of a scope may cost an hour together: requested, running and idle ones. A " +
			"job starts only on machines that fit, and others wait in the queue, those with less work first, so that the " +
			"mean completion time is small. Running jobs go on. 0 starts nothing. scrimp budgets rm all/hour removes the " +
			"limit." + command.PlainExit,
		Example: "  scrimp budgets rate 40\n  scrimp budgets rate 12.50 --team vision",
	}
	w.scopeFlags(cmd)
	cmd.RunE = a.With(func(ctx context.Context, c *command.Client, args []string) error {
		l, err := w.limit(cmd)
		if err != nil {
			return err
		}
		rate, err := spec.ParsePrice(args[0])
		if err != nil {
			return fmt.Errorf("DOLLARS %s: %w: write dollars an hour, as in 40 or 12.50", args[0], err)
		}
		if l.Window, l.Rate = budget.Hour, &rate; rate < 0 {
			return fmt.Errorf("DOLLARS %s is below zero: write 0 to start nothing", args[0])
		}
		if err := l.Check(); err != nil {
			return err
		}
		err = a.putBudget(ctx, c, api.SetBudget{Limit: convert.To[*api.Limit](&l)}, fmt.Sprintf(
			"Machines of %s may cost $%s an hour at once.", l.Scope, rate))
		return command.InFlags(err, map[string]string{"limit.scope": w.flag()})
	})
	return cmd
}

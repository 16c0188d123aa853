package share

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
)

func (a *app) machinesCmd() *cobra.Command {
	return &cobra.Command{Use: "machines", Short: "List rented machines, what they do and cost",
		Args: command.Takes(), GroupID: command.GroupLook,
		Long: "Lists rented machines: provisioning, running a job, saving, idle (it waits for the next job of the same " +
			"user), cleaning (the agent removes what the last job left) or releasing (its termination is requested). scrimp " +
			"keeps an idle machine only where its engine allows it (idle in engines.yaml), and as long as that is expected " +
			"to pay; its team pays the idle time. COST is of the machine, over all its jobs." +
			command.PlainExit,
		Example: "  scrimp machines\n  scrimp machines --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var list []api.Machine
			if err := c.Do(ctx, http.MethodGet, "/v1/machines", nil, &list); err != nil {
				return err
			}
			return command.ShowEach(a.App, list, show.Machines(list, a.Place()))
		})}
}

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
	return &cobra.Command{Use: "machines", Short: "List the machines that cost something now, and what each does",
		Args: command.Takes(), GroupID: command.GroupLook,
		Long: "Lists what is rented: provisioning, running a job, saving, idle (its job is over, and it waits for the " +
			"next job of the same user), cleaning (what that job left is being removed) or releasing (its end is asked " +
			"for). An idle machine is kept only as long as that is expected to pay, where its engine lets machines wait " +
			"(idle in engines.yaml); its time is its team's, and no job's. COST is of the machine, over all its jobs." +
			command.PlainExit,
		Example: "  scrimp machines\n  scrimp machines --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var list []api.Machine
			if err := c.Do(ctx, http.MethodGet, "/v1/machines", nil, &list); err != nil {
				return err
			}
			if !a.JSON {
				a.Printf("%s", show.Machines(list, a.Place()))
				return nil
			}
			for _, m := range list {
				if err := a.Print(m); err != nil {
					return err
				}
			}
			return nil
		})}
}

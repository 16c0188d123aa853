package gc

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/artifacts"
)

// Cache returns the command below scrimp pipeline that lists kept outputs.
func Cache(shared *command.App) *cobra.Command {
	a := &app{shared}
	return &cobra.Command{Use: "cache", Short: "List the kept outputs of stages, with what they are worth",
		Args: command.Takes(),
		Long: "Lists the outputs of stages that runs may use instead of making them again, those with the most value per " +
			"byte first: what making them cost, how many runs used them, the odds of a use in 30 days " +
			"(docs/formulas.md), and the product of cost and odds. scrimp gc --fit SIZE removes the least valuable ones." +
			command.PlainExit,
		Example: "  scrimp pipeline cache\n  scrimp gc --fit 20GB --dry-run",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var v api.Cache
			if err := c.Do(ctx, http.MethodGet, "/v1/cache", nil, &v); err != nil {
				return err
			}
			return a.Show(v, artifacts.Cache(v, a.Place()))
		})}
}

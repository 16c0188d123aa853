package simulate

import (
	"github.com/spf13/cobra"

	"scrimp/internal/cli/benchmark"
	"scrimp/internal/cli/command"
)

func (a *app) simulateCmd() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use: "simulate job.yaml --market FILE", Short: "Simulate a job on a recorded market, and compare policies",
		GroupID: command.GroupMoney,
		Long: `Simulates the job on a recorded or generated market with the production code, once for each deadline
policy, and compares cost, finish, interruptions and lost work with on-demand and with an oracle that
knows the future (the optimum, on a grid of a minute or more).
--seeds N submits the job at N times spread over the market. Nothing is rented, and no server is needed.
--history answers: which policy would have saved most on the jobs that this server has run?

Exit status: 0 done, 2 no policy can meet the deadline, 1 error.`,
		Example: `  scrimp simulate job.yaml --market stormy --seeds 20
  scrimp simulate job.yaml --market recorded.yaml --policy default,on-demand --svg runs.svg
  scrimp simulate --history --since 30d`,
		Args: func(cmd *cobra.Command, args []string) error { return f.check(args, cmd.Flags().Changed) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.history {
				return a.simulateHistory(cmd.Context(), f)
			}
			return a.simulateJob(cmd, args, f)
		},
	}
	a.simulateFlags(cmd, &f)
	cmd.AddCommand(benchmark.Commands(a.App)...)
	return cmd
}

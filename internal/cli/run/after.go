package run

import "github.com/spf13/cobra"

// together holds the flags that make a job depend on others.
type together struct{ after []string }

func (t *together) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&t.after, "after", nil, "begin after this `job` or array has succeeded, or, as JOB:any, "+
		"is over (may be repeated; default: at once)")
	_ = cmd.RegisterFlagCompletionFunc("after", cobra.NoFileCompletions)
}

package run

import (
	"fmt"

	"github.com/spf13/cobra"
)

// together holds the flags that make a job depend on others.
type together struct{ after []string }

func (t *together) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&t.after, "after", nil, "begin after this `job` or array has succeeded, or, as JOB:any, "+
		"is over (may be repeated; default: at once)")
	_ = cmd.RegisterFlagCompletionFunc("after", cobra.NoFileCompletions)
}

// valid refuses empty flags: an unset shell variable must not drop a dependency.
func (t *together) valid(cmd *cobra.Command) error {
	for _, name := range []string{"array", "after"} {
		if v := cmd.Flag(name).Value.String(); cmd.Flag(name).Changed && (v == "" || v == "[]") {
			return fmt.Errorf("--%s is empty: write what it is, or leave the flag out", name)
		}
	}
	return nil
}

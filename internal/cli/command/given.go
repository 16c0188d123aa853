package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NoEmptyFlags makes a command refuse flags whose value is empty, such as --budget "$UNSET": they would count as left
// out.
func NoEmptyFlags(cmd *cobra.Command) *cobra.Command {
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		cmd.Flags().Visit(func(f *pflag.Flag) {
			if text := f.Value.String(); text == "" || text == "[]" {
				err = fmt.Errorf("--%s is empty: write its value, or leave the flag out", f.Name)
			}
		})
		return err
	}
	return cmd
}

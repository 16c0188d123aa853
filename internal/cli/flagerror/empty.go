package flagerror

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NoEmpty makes a command refuse flags whose value is empty, such as --month "$UNSET": they would count as left
// out, and so as every month, team or job. A flag whose help says what "" means accepts it.
func NoEmpty(c *cobra.Command) {
	before := c.PreRunE
	c.PreRunE = func(cmd *cobra.Command, args []string) error {
		var empty []string
		cmd.Flags().Visit(func(f *pflag.Flag) {
			if isEmpty(f.Value) && !strings.Contains(f.Usage, `""`) {
				empty = append(empty, "--"+f.Name)
			}
		})
		switch {
		case len(empty) == 1:
			return fmt.Errorf("%s is empty: write its value, or leave the flag out", empty[0])
		case len(empty) > 1:
			return fmt.Errorf("%s are empty: write their values, or leave the flags out", strings.Join(empty, " and "))
		case before != nil:
			return before(cmd, args)
		}
		return nil
	}
}

// isEmpty reports whether a value, or one of a list, is empty.
func isEmpty(v pflag.Value) bool {
	list, is := v.(pflag.SliceValue)
	if !is {
		return v.String() == ""
	}
	return len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
}

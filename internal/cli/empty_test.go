package cli_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scrimp/internal/cli"
)

// scrimp reconcile --month "$UNSET" --book booked another month, and scrimp jobs --team "$UNSET" listed all teams: an
// empty value counted as a flag that is left out. Only a flag whose help says what "" means takes it.
func TestFlags_NoneTakesAnEmptyValue(t *testing.T) {
	t.Parallel()
	flags, takes := 0, 0
	var each func(*cobra.Command)
	each = func(c *cobra.Command) {
		var refused string
		var texts []*pflag.Flag
		c.InheritedFlags() // merges them into the command's own
		c.Flags().VisitAll(func(f *pflag.Flag) {
			f.Changed = false                                       // --data and --server are the same flags in all commands
			if c.ParseFlags([]string{"--" + f.Name + "="}) == nil { // a number or a switch is refused here
				texts = append(texts, f)
			}
		})
		if err := c.PreRunE(c, nil); err != nil {
			refused, _, _ = strings.Cut(err.Error(), " empty:")
		}
		for _, f := range texts {
			means := strings.Contains(f.Usage, `""`)
			if strings.Contains(refused+" ", "--"+f.Name+" ") == means {
				t.Errorf("%s --%s= takes an empty value: %t; refused: %s", c.CommandPath(), f.Name, !means, refused)
			}
			if flags++; means {
				takes++
			}
		}
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(cli.Root())
	if flags < 500 || takes != 2 {
		t.Errorf("%d flags, %d take an empty value", flags, takes)
	}
}

// Package own holds the commands that compute the cost of ownership of a model and the return of a change.
package own

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/page"
	"scrimp/internal/cli/show/purchase"
	"scrimp/internal/work/own"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.tcoCmd(), a.roiCmd()}
}

// maxFile bounds the files that are read; a longer one is refused.
const maxFile = 1<<20 + 1

func read(file string) ([]byte, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	defer func() { _ = in.Close() }()
	text, err := io.ReadAll(io.LimitReader(in, maxFile))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return text, nil
}

func (a *app) tcoCmd() *cobra.Command {
	var option string
	cmd := &cobra.Command{
		Use: "tco FILE", Short: "Cost of owning a model, in the cloud, on-premises or both",
		GroupID: command.GroupMoney,
		Long: `Adds up what each way to run a model costs over its life: development, training, inference, maintenance and
engineering time. It says from which month on one way costs less than another, and draws how the total changes
with each value that has a range, the widest first.

The file lists values (a number, or value, low, high, unit and source) and options, such as cloud, on-premises
and hybrid. Each option is a list of lines: phase, what, and once or monthly as a number or a list of factors
that are multiplied, each a number or the name of a value. See docs/own.md. All sums are exact.` + command.PlainExit,
		Example: "  scrimp tco model.yaml\n  scrimp tco model.yaml --option hybrid",
		Args:    command.Takes("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := read(args[0])
			if err != nil {
				return err
			}
			t, err := own.ParseTCO(args[0], text)
			if err != nil {
				return err
			}
			var names []string
			for _, o := range t.Options {
				names = append(names, o.Name)
			}
			if option != "" && !slices.Contains(names, option) {
				return fmt.Errorf("--option %q is none of %s", option, strings.Join(names, ", "))
			}
			v := purchase.TCOOf(t, option)
			return a.Show(v, v.Text(a.Place()))
		},
	}
	cmd.Flags().StringVar(&option, "option", "", "draw the sensitivity of this `option` (default: the cheapest)")
	return cmd
}

func (a *app) roiCmd() *cobra.Command {
	var file string
	var force bool
	cmd := &cobra.Command{
		Use: "roi FILE", Short: "Return of a change: dollars saved against quality given up",
		GroupID: command.GroupMoney,
		Long: `Says what a change of a model returns: dollars saved a month, less what the quality given up is worth, against
what it costs once; payback, gain, and how much a unit of quality may be worth at most for it to pay.

The file lists values as that of scrimp tco does, then before and after (what a month costs), investment (what
is paid once) and quality (metric, given_up, worth). See docs/own.md. All sums are exact.

--html PAGE writes the business case as a page, with its assumptions and the cumulative net by month. The folder
must exist. The page replaces an earlier business case, and any other file only with --force.` + command.PlainExit,
		Example: "  scrimp roi change.yaml\n  scrimp roi change.yaml --html case.html",
		Args:    command.Takes("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := read(args[0])
			if err != nil {
				return err
			}
			t, err := own.ParseROI(args[0], text)
			if err != nil {
				return err
			}
			v := purchase.ROIOf(t)
			if file == "" {
				return a.Show(v, v.Text(a.Place()))
			}
			b, err := purchase.ROIPage(t)
			if err != nil {
				return err
			}
			if err := page.Write(file, purchase.ROIPageBegin, "business case", force, b); err != nil {
				return err
			}
			a.Notef("The business case is in %s\n", file)
			if a.JSON {
				return a.Print(v)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "html", "", "write it as one page to this `file` (default: print it as text)")
	cmd.Flags().BoolVar(&force, "force", false, "let --html replace a file that is not a business case (default: refuse)")
	_ = cmd.RegisterFlagCompletionFunc("html", command.Files("html"))
	return cmd
}

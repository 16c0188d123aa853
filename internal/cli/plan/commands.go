// Package plan holds the commands that predict a job before it spends money: plan and check.
package plan

import (
	"context"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
)

// app gives the commands of this package their shared environment.
type app struct {
	*command.App
	study func(ctx context.Context, file string, f jobfile.Flags) error // plans a search
}

// Commands returns the commands of this package. study plans a search in place of a job.
func Commands(shared *command.App,
	study func(ctx context.Context, file string, f jobfile.Flags) error) []*cobra.Command {
	a := &app{shared, study}
	return []*cobra.Command{
		a.planCmd(), a.checkCmd(),
	}
}

// Package plan holds the commands that say what becomes of a job before money is spent: plan and check.
package plan

import (
	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
)

// app is what every command is given, for the commands of this package.
type app struct{ *command.App }

// Commands are those of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{
		a.planCmd(), a.checkCmd(),
	}
}

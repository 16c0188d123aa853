// Package estimate is the command that says what a training run needs.
package estimate

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
		a.estimateCmd(),
	}
}

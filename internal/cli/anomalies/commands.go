// Package anomalies holds the commands that find what is unusual in spend and in series.
package anomalies

import (
	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
)

// app is what every command is given, for the commands of this package.
type app struct{ *command.App }

// Commands are those of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	cmd := a.listCmd()
	cmd.AddCommand(a.scoreCmd())
	return []*cobra.Command{cmd}
}

// Package anomalies holds the commands that find unusual spend and unusual values in series, and record what people say
// about incidents.
package anomalies

import (
	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	cmd := a.listCmd()
	cmd.AddCommand(a.scoreCmd(), a.snoozeCmd(), a.dismissCmd(), a.confirmCmd(), a.plannedCmd(),
		a.unplanCmd(), a.alertCmd())
	return []*cobra.Command{cmd}
}

// Package offers holds the commands about rentable machines: offers, the catalogue and markets.
package offers

import (
	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{
		a.offersCmd(), a.catalogCmd(),
	}
}

// Market returns the command market; serve runs the process of a local market.
func Market(shared *command.App, serve *cobra.Command) *cobra.Command {
	cmd := (&app{shared}).marketCmd()
	cmd.AddCommand(serve)
	return cmd
}

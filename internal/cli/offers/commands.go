// Package offers holds the commands about what can be rented: offers, the catalogue and markets.
package offers

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
		a.offersCmd(), a.catalogCmd(),
	}
}

// Market is the command market; serve is the process that a local market is.
func Market(shared *command.App, serve *cobra.Command) *cobra.Command {
	cmd := (&app{shared}).marketCmd()
	cmd.AddCommand(serve)
	return cmd
}

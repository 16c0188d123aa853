// Package share holds the commands of those who share a server: users, tokens, limits and whose machines are.
package share

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
		a.usersCmd(), a.teamsCmd(), a.tokensCmd(), a.auditCmd(), a.budgetsCmd(), a.costsCmd(), a.whyCmd(), a.chargebackCmd(),
		a.machinesCmd(), a.openCmd(),
		a.adoptCmd(), a.releaseCmd(),
		a.loginCmd(), a.logoutCmd(),
	}
}

// Package share holds the commands for shared servers: users, tokens, limits, and the ownership of machines.
package share

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
		a.usersCmd(), a.teamsCmd(), a.tokensCmd(), a.auditCmd(), a.budgetsCmd(), a.costsCmd(), a.whyCmd(), a.chargebackCmd(),
		a.machinesCmd(), a.openCmd(),
		a.adoptCmd(), a.releaseCmd(),
		a.loginCmd(), a.logoutCmd(),
	}
}

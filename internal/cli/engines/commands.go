// Package engines holds the commands that set up and examine engines, `scrimp engine` and `scrimp doctor`, and the
// kinds of engines that this program has.
package engines

import (
	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.doctorCmd(), a.engineCmd()}
}

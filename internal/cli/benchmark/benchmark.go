// Package benchmark holds the commands that play the public benchmarks: of deadlines, zones, queues and packing.
package benchmark

import (
	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package, which belong below `scrimp simulate`.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.deadlineCmd(), a.zonesCmd(), a.queueCmd(), a.packCmd()}
}

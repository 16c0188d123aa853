// Package jobs holds the commands that list, show, wait for, approve and end jobs.
package jobs

import (
	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package. Those of shares are below scrimp queue.
func Commands(shared *command.App, shares ...*cobra.Command) []*cobra.Command {
	a := &app{shared}
	queue := a.queueCmd()
	queue.AddCommand(shares...)
	return []*cobra.Command{a.jobsCmd(), queue, a.statusCmd(), a.logsCmd(), a.attachCmd(), a.waitCmd(), a.execCmd(),
		a.cancelCmd(), a.stopCmd(), a.approveCmd(), a.rejectCmd(), a.receiptCmd(), a.explainCmd()}
}

// Package jobs holds the commands about jobs: to run them, to see them, and to change and end them.
package jobs

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
		a.runCmd(), a.rerunCmd(), a.pipelineCmd(), a.jobsCmd(), a.groupsCmd(), a.queueCmd(), a.statusCmd(), a.topCmd(),
		a.logsCmd(), a.attachCmd(), a.waitCmd(), a.execCmd(), a.pauseCmd(), a.resumeCmd(), a.updateCmd(),
		a.cancelCmd(), a.stopCmd(), a.approveCmd(), a.rejectCmd(),
		a.checkpointsCmd(), a.getCmd(), a.receiptCmd(), a.explainCmd(), a.profileCmd(), a.diagnoseCmd(), a.abCmd(),
	}
}

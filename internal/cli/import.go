package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/job/jobimport"
)

func (a *app) importCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "import FILE", Short: "Turn a SkyPilot, dstack or sbatch file into a job file",
		Args: command.Takes("FILE"), GroupID: command.GroupRun,
		Long: "Turns a SkyPilot or dstack YAML file or an sbatch script into a job file. What it cannot carry over " +
			"is listed on stderr with its line (with --json: on stdout, an object each)." + command.PlainExit,
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read %s: %w", args[0], err)
			}
			r, err := jobimport.ConvertTo(args[0], file, text)
			if err != nil {
				return err
			}
			for _, l := range r.Lost {
				if a.JSON {
					if err := a.Print(l); err != nil {
						return err
					}
					continue
				}
				a.Notef("not carried over: %s:%d `%s` %s\n", args[0], l.Line, l.Field, l.Why)
			}
			return a.writeNew(file, r.YAML, nil)
		}}
	cmd.Flags().StringVarP(&file, "output", "o", "job.yaml", "`file` to write")
	return cmd
}

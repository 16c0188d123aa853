package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/terminal"
)

// execFlags say where a command runs and what input it gets.
type execFlags struct {
	input, terminal bool
	node            int
}

func (a *app) execCmd() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{Use: "exec JOB -- COMMAND [ARG ...]",
		Short: "Run a command on the job's machine, in its work folder", Args: command.Takes("JOB", "COMMAND", "[ARG ...]"),
		GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Live),
		Long: "Runs a command on the machine that the job has now, in its work folder and environment, and prints what it " +
			"wrote: within a minute, and at most 1 MiB. Of a job on several machines that is the machine of node 0, or of the " +
			"--node that is given.\n\nWith -i the command gets the input of this one, and with -it a terminal of its own, as " +
			"large as this one, and Ctrl-C goes to it: scrimp exec -it JOB -- bash is a shell beside the program. It may last " +
			"as long as the job holds the machine, and ends with the connection.\n\nIt has the job's secrets and files: a " +
			"submitter may run commands in their own jobs, an operator in those of the team, and each begin is on record " +
			"(scrimp audit).\n\nExit status: the command's own; 1 where it could not be run.",
		Example: "  scrimp exec train-lm -- nvidia-smi\n  scrimp exec -it train-lm -- bash\n" +
			"  scrimp exec --node 3 train-lm -- ps aux\n  scrimp exec -i train-lm -- tee notes.txt < notes.txt",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			e := api.Exec{Command: args[1:], Node: f.node}
			if f.node < 0 {
				return fmt.Errorf("--node %d: the machines of a gang are counted from 0", f.node)
			}
			if f.input || f.terminal {
				return a.session(ctx, c, args[0], e, f.terminal)
			}
			return a.execute(ctx, c, args[0], e)
		})}
	cmd.Flags().BoolVarP(&f.input, "stdin", "i", false, "give the command the input of this one (default: none)")
	cmd.Flags().BoolVarP(&f.terminal, "tty", "t", false, "give the command a terminal, and this one's input (default: "+
		"none)")
	cmd.Flags().IntVar(&f.node, "node", 0, "on which machine of a gang, from 0")
	_ = cmd.RegisterFlagCompletionFunc("node", command.Words("0", "1"))
	return cmd
}

// execute runs a command and prints its output.
func (a *app) execute(ctx context.Context, c *command.Client, job string, e api.Exec) error {
	var result api.ExecResult
	if err := c.Do(ctx, http.MethodPost, command.OfJob(job, "/exec"), e, &result); err != nil {
		return err
	}
	if a.JSON {
		if err := a.Print(show.Exec(result)); err != nil {
			return err
		}
		if result.Error == "" {
			return ended(e, result.Exit, "")
		}
		return nil
	}
	_, _ = a.Out.Write(result.Output)
	return ended(e, result.Exit, result.Error)
}

// ended converts the result of the remote command to the result of this one.
func ended(e api.Exec, exit int, failed string) error {
	switch {
	case failed != "":
		return fmt.Errorf("run %s: %s", e.Command[0], failed)
	case exit != 0:
		return command.Exit(exit)
	}
	return nil
}

// session runs an interactive command until it ends.
func (a *app) session(ctx context.Context, c *command.Client, job string, e api.Exec, onTerminal bool) error {
	if a.JSON {
		return errors.New("a session has no --json: leave it out, or -i and -t")
	}
	s := terminal.Session{Client: c, Job: job, Exec: e, Out: a.Out}
	if onTerminal {
		var err error
		if s.Screen, err = terminal.Of(a.In); err != nil {
			return errors.New("-t needs a terminal, and the input is not one: leave it out")
		}
	}
	s.Keys = terminal.Read(a.In)
	end, err := s.Run(ctx)
	if err != nil {
		return err
	}
	return ended(e, end.Exit, end.Error)
}

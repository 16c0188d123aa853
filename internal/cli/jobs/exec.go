package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/wait"
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
func (a *app) session(ctx context.Context, c *command.Client, job string, e api.Exec, terminal bool) error {
	if a.JSON {
		return errors.New("a session has no --json: leave it out, or -i and -t")
	}
	e.Input = true
	keys, _ := a.In.(*os.File)
	if terminal {
		if keys == nil || !term.IsTerminal(int(keys.Fd())) {
			return errors.New("-t needs a terminal, and the input is not one: leave it out")
		}
		e.Terminal = sizeOf(keys)
		e.Terminal.Kind = os.Getenv("TERM")
	}
	var begun api.ExecResult
	if err := c.Do(ctx, http.MethodPost, command.OfJob(job, "/exec"), e, &begun); err != nil {
		return err
	}
	if begun.Session == "" {
		return errors.New("the server knows no sessions: it is older than this command")
	}
	path := command.OfJob(job, "/exec/") + url.PathEscape(begun.Session)
	r, err := c.Request(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	if terminal {
		before, err := term.MakeRaw(int(keys.Fd()))
		if err != nil {
			return fmt.Errorf("take the terminal: %w", err)
		}
		defer func() { _ = term.Restore(int(keys.Fd()), before) }()
	}
	typing, stop := context.WithCancel(ctx)
	defer stop()
	typed := typist{c: c, path: path}
	go typed.keys(typing, a) // ends after the next line, or with the process
	if terminal {
		go typed.sizes(typing, keys)
	}
	return a.printed(ctx, e, json.NewDecoder(r.Body))
}

// printed prints the output of a session until it ends.
func (a *app) printed(ctx context.Context, e api.Exec, from *json.Decoder) error {
	for {
		var o api.ExecOutput
		if err := from.Decode(&o); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("the session is broken off: the server went away, or the right to it ended (%w)", err)
		}
		if _, err := a.Out.Write(o.Output); err != nil {
			return err
		}
		if o.Over {
			return ended(e, o.Exit, o.Error)
		}
	}
}

// typist sends the local input to a session.
type typist struct {
	c    *command.Client
	path string
}

// send retries while the command has not read the previous input.
func (t typist) send(ctx context.Context, in api.ExecInput) error {
	for {
		err := t.c.Do(ctx, http.MethodPost, t.path, in, nil)
		problem, ok := errors.AsType[*api.Problem](err)
		if !ok || problem.Status != http.StatusTooManyRequests {
			return err
		}
		if err := wait.For(ctx, time.Second/2); err != nil {
			return err
		}
	}
}

// keys sends the input until the input or the session ends.
func (t typist) keys(ctx context.Context, a *app) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := a.In.Read(buffer)
		if n > 0 && t.send(ctx, api.ExecInput{Input: buffer[:n]}) != nil || ctx.Err() != nil {
			return
		}
		if err != nil {
			_ = t.send(ctx, api.ExecInput{End: true}) // the session's output reports its end
			return
		}
	}
}

// sizes sends the size of the terminal whenever it changes.
func (t typist) sizes(ctx context.Context, terminal *os.File) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			_ = t.send(ctx, api.ExecInput{Terminal: sizeOf(terminal)}) // the next change repeats it
		}
	}
}

func sizeOf(f *os.File) *api.Terminal {
	width, height, _ := command.TerminalSize(f)
	return &api.Terminal{Rows: height, Cols: width}
}

// Package utilization holds the commands that show what machines do, and what makes a job use them badly.
package utilization

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/utilization"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/wait"
)

// topEvery is the time between two redraws; agents measure every five seconds.
const topEvery = 2 * time.Second

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.topCmd(), a.diagnoseCmd()}
}

// topFlags say what to show.
type topFlags struct {
	last    time.Duration
	attempt int
	once    bool
}

func (a *app) topCmd() *cobra.Command {
	var f topFlags
	var last string
	cmd := &cobra.Command{Use: "top [JOB]", Short: "Show what machines do: GPUs, processors, memory, disks, network",
		Args: command.Takes("[JOB]"), GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Shows what the machines of a job are measured to do, each for itself: now, on average and at most over " +
			"the span of --last, and as a line over that span. A terminal is redrawn every two seconds until the job is " +
			"over or Ctrl-C; elsewhere it prints once. Of a job that is over it shows the last measurements. Without a JOB it " +
			"shows a line for each running job. What nobody knows is a dash, never zero. With --json it prints one object, " +
			"of a job all that was measured in that span, in bytes, shares from 0 to 1, watts and degrees Celsius." +
			command.PlainExit,
		Example: "  scrimp top\n  scrimp top train-lm\n  scrimp top train-lm --attempt 1 --last 24h --once\n" +
			"  scrimp top train-lm --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if err := f.read(last); err != nil {
				return err
			}
			a.Waiting(ctx, c)
			if len(args) == 0 {
				return a.topAll(ctx, c, f.once)
			}
			j, err := c.Job(ctx, args[0])
			if err != nil {
				return err
			}
			return a.top(ctx, c, j.ID, f)
		})}
	cmd.Flags().StringVar(&last, "last", "15m", "`span` of the end that is shown, by the clock on the wall, or all")
	cmd.Flags().IntVar(&f.attempt, "attempt", 0, "of which attempt, from 1 (default: the newest that was measured)")
	cmd.Flags().BoolVar(&f.once, "once", false, "print once, also in a terminal (default: until Ctrl-C)")
	return cmd
}

// read parses the flags.
func (f *topFlags) read(last string) (err error) {
	if f.attempt < 0 {
		return errors.New("top: --attempt is below 1: write which attempt is shown, counted from 1")
	}
	if last == "all" {
		return nil
	}
	if f.last, err = spec.ParseDuration(last); err != nil || f.last <= 0 {
		return fmt.Errorf("top: --last is %q: write a span with its unit, such as 15m, or all", last)
	}
	return nil
}

// top shows one job.
func (a *app) top(ctx context.Context, c *command.Client, job string, f topFlags) error {
	if a.JSON {
		t, err := c.Telemetry(ctx, job, f.last, f.attempt)
		if err != nil {
			return err
		}
		return a.Print(t)
	}
	return a.redraw(ctx, f.once, func() (string, bool, error) {
		t, err := c.Telemetry(ctx, job, f.last, f.attempt)
		if err != nil {
			return "", false, err
		}
		goesOn := t.State == "running" || t.State == "queued"
		return utilization.Telemetry(t, f.last, a.Place()), goesOn && f.attempt == 0, nil
	})
}

// topAll shows all running jobs.
func (a *app) topAll(ctx context.Context, c *command.Client, once bool) error {
	all := func() (list []api.JobTelemetry, err error) {
		err = c.Do(ctx, http.MethodGet, "/v1/telemetry", nil, &list)
		return list, err
	}
	if a.JSON {
		list, err := all()
		if err != nil {
			return err
		}
		return command.PrintEach(a.App, list)
	}
	return a.redraw(ctx, once, func() (string, bool, error) {
		list, err := all()
		return utilization.Running(list, a.Place()), true, err
	})
}

// redraw prints a page. On a terminal it redraws the page in place until the last one.
func (a *app) redraw(ctx context.Context, once bool, page func() (text string, more bool, err error)) error {
	_, isTerminal := command.Terminal(a.Out)
	for lines := 0; ; {
		text, more, err := page()
		switch {
		case err != nil && ctx.Err() != nil && lines > 0:
			return nil // Ctrl-C
		case err != nil:
			return err
		}
		switch {
		case lines == 0:
		case lines < a.height():
			a.Printf("\x1b[%dA\x1b[J", lines)
		default: // its first lines have scrolled off the screen
			a.Printf("\x1b[2J\x1b[H")
		}
		a.Printf("%s", text)
		lines = strings.Count(text, "\n")
		if once || !more || !isTerminal || wait.For(ctx, topEvery) != nil {
			return nil
		}
	}
}

// height returns the number of lines of the terminal.
func (a *app) height() int {
	if f, ok := a.Out.(*os.File); ok {
		if _, height, ok := command.TerminalSize(f); ok {
			return height
		}
	}
	return 24
}

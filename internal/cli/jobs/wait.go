package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/groups"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/wait"
)

func (a *app) waitCmd() *cobra.Command {
	var timeout string
	cmd := &cobra.Command{Use: "wait JOB ...", Short: "Wait until jobs have ended; the exit status says how",
		Args: command.Takes("JOB", "[JOB ...]"), GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJobs(command.Live),
		Long: "Waits until each of the jobs is over and holds no machine any more, and prints a line for each as it ends: " +
			"how, after how long, and what it cost. What becomes of them meanwhile goes to stderr. A job that is " +
			"paused or held is waited for as well. The jobs do not depend on it: Ctrl-C and --timeout leave them alone, and a " +
			"server that is restarted is found again.\n\nExit status: 0 all succeeded, 3 some failed or were stopped, 124 " +
			"the --timeout is over, 1 error.",
		Example: "  scrimp wait train-lm && scrimp get train-lm\n  scrimp wait sweep-1 sweep-2 sweep-3 --timeout 6h",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			left := time.Duration(0)
			if timeout != "" {
				var err error
				if left, err = spec.ParseDuration(timeout); err != nil || left <= 0 {
					return fmt.Errorf("--timeout %.40q is not a span above zero, such as 90s or 6h", timeout)
				}
			}
			return a.wait(ctx, c, args, left)
		})}
	cmd.Flags().StringVar(&timeout, "timeout", "", "wait for this `span` at most, by the clock on the wall, as 90s or 6h "+
		"(default: until they have ended)")
	_ = cmd.RegisterFlagCompletionFunc("timeout", cobra.NoFileCompletions)
	return cmd
}

// wait waits until the jobs have ended, at most for the given time; 0 means any time.
func (a *app) wait(ctx context.Context, c *command.Client, names []string, most time.Duration) error {
	patient, stop := ctx, func() {}
	if most > 0 {
		patient, stop = context.WithTimeout(ctx, most)
	}
	defer stop()
	w := waiting{a: a, c: c, shown: map[string]string{}, follows: map[string]*show.Follow{}}
	for _, name := range names { // report an unknown job before waiting
		j, err := c.Job(ctx, name)
		if err != nil {
			err = groups.Or(ctx, c, name, err, func(g api.Group) error { j.ID = g.ID; return nil })
		}
		if err != nil {
			return err
		}
		if !slices.Contains(w.left, j.ID) {
			w.left = append(w.left, j.ID)
		}
	}
	err := w.all(patient)
	switch {
	case err == nil && w.bad:
		return command.JobFailed
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %s: the jobs go on", w.outstanding())
	case errors.Is(err, context.DeadlineExceeded):
		return &command.Verdict{Exit: command.TimedOut,
			Err: fmt.Errorf("after %s %s: the jobs go on", draw.Span(most), w.outstanding())}
	}
	return err
}

// waiting holds the jobs that have not ended yet.
type waiting struct {
	a       *app
	c       *command.Client
	left    []string
	shown   map[string]string // the last line about each
	follows map[string]*show.Follow
	bad     bool // a job did not succeed
}

// all polls the jobs until all have ended. It waits for an unreachable server.
func (w *waiting) all(ctx context.Context) error {
	for failed := 0; ; {
		err := w.round(ctx)
		switch {
		case err == nil && len(w.left) == 0:
			return nil
		case err == nil:
			failed = 0
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Code == api.JobUnknown {
				return err
			}
			if failed++; failed > 20 {
				return fmt.Errorf("wait for %s: %w", strings.Join(w.left, ", "), err)
			}
			if failed%4 == 0 { // another server takes over
				if c, err := w.a.Ensure(ctx, ""); err == nil {
					w.c = c
				}
			}
		}
		pause := 300*time.Millisecond + time.Duration(len(w.left))*10*time.Millisecond
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
	}
}

// before returns what was last shown of a job.
func (w *waiting) before(id string) *show.Follow {
	if w.follows[id] == nil {
		w.follows[id] = &show.Follow{}
	}
	return w.follows[id]
}

// round polls each job and prints changes.
func (w *waiting) round(ctx context.Context) error {
	for _, id := range slices.Clone(w.left) {
		j, err := w.c.Job(ctx, id)
		if err != nil {
			if no := groups.Or(ctx, w.c, id, err, w.group); no != nil {
				return no
			}
			continue
		}
		if !j.Closed {
			if state := j.State + j.Machine + j.Phase; state != w.shown[id] {
				w.shown[id] = state
				w.a.Notef("%s\n", w.before(id).Progress(j, w.a.Line()))
			}
			continue
		}
		w.left = slices.DeleteFunc(w.left, func(s string) bool { return s == id })
		w.bad = w.bad || j.State != "succeeded"
		if !w.a.JSON {
			w.a.Printf("%s", show.Ended(j, w.a.Place()))
		} else if err := w.a.Print(j); err != nil {
			return err
		}
	}
	return nil
}

// group prints the changes of a group.
func (w *waiting) group(g api.Group) error {
	if !g.Closed {
		if line := group.Progress(g, w.a.Line()); line != w.shown[g.ID] {
			w.shown[g.ID] = line
			w.a.Notef("%s\n", line)
		}
		return nil
	}
	w.left = slices.DeleteFunc(w.left, func(s string) bool { return s == g.ID })
	w.bad = w.bad || groups.Failed(g)
	if !w.a.JSON {
		w.a.Printf("%s\n", group.Progress(g, w.a.Line()))
		return nil
	}
	return w.a.Print(g)
}

// outstanding names the jobs that have not ended.
func (w *waiting) outstanding() string {
	if len(w.left) == 1 {
		return w.left[0] + " is not over"
	}
	return fmt.Sprintf("%d jobs are not over (%s)", len(w.left), strings.Join(w.left, ", "))
}

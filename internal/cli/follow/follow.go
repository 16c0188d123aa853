// Package follow shows the progress of a job until it is closed, and then its receipt.
package follow

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/artifacts"
	"scrimp/internal/lib/wait"
)

// Job shows a job's progress until it is closed, and then its receipt. The progress goes to stderr; the receipt is
// the output.
func Job(ctx context.Context, a *command.App, c *command.Client, id string) error {
	_, isTerminal := command.Terminal(a.Err)
	var paper pacer
	shown, before := "", show.Follow{}
	final, err := Watch(ctx, a, c, id, func(j api.Job) {
		if a.JSON {
			_ = a.Print(j)
			return
		}
		if isTerminal {
			a.Notef("\r%s\x1b[K", before.Progress(j, a.Line()))
			if state := j.State + j.Machine + j.Phase; state != shown {
				a.Notef("\n")
				shown = state
			}
		} else if paper.worth(j, a.Now()) {
			a.Notef("%s\n", before.Progress(j, a.Line()))
		}
	})
	if isTerminal && !a.JSON {
		a.Notef("\n")
	}
	return over(ctx, a, c, id, final, err)
}

// over prints the result of a followed job, or reports that it continues.
func over(ctx context.Context, a *command.App, c *command.Client, id string, final api.Job, err error) error {
	if err != nil {
		if ctx.Err() != nil {
			a.Notef("\nDetached: %s goes on. scrimp attach %s comes back to it, scrimp stop %s ends it.\n", id, id, id)
			return nil
		}
		return err
	}
	if !a.JSON {
		if err := Closed(ctx, a, c, final); err != nil {
			return err
		}
	}
	if final.State != "succeeded" {
		return command.JobFailed
	}
	return nil
}

// Closed prints the receipt of an ended job, and why it failed or was refused.
func Closed(ctx context.Context, a *command.App, c *command.Client, final api.Job) error {
	r, err := c.Receipt(ctx, final.ID)
	if err != nil {
		return err
	}
	a.Printf("%s", r.Text(a.Place().Width))
	saysKept(ctx, a, c, final)
	if final.State == "failed" {
		a.Notef("%s", show.Failed(final, LastLines(ctx, c, final.ID, 5), a.Line()))
	}
	if final.State == "stopped" || final.State == "cancelled" {
		a.Notef("\n%s", artifacts.GoesOn(final, a.Line()))
	}
	if v := final.Approval; v != nil && v.Approved != nil && !*v.Approved {
		a.Notef("%s", show.Refused(final, a.Line()))
	}
	return nil
}

// pacer selects the progress worth a line where earlier lines stay visible.
type pacer struct {
	state string
	last  time.Time
}

// worth reports whether j deserves a line now: its state has changed, or three seconds have passed. A job that keeps
// waiting for the same reason gets a line a minute.
func (p *pacer) worth(j api.Job, now time.Time) bool {
	state, pause := j.State+j.Machine+j.Phase, 3*time.Second
	if j.State == "queued" || j.State == "held" || j.State == "paused" {
		state, pause = state+j.Why, time.Minute
	}
	if state == p.state && now.Sub(p.last) < pause {
		return false
	}
	p.state, p.last = state, now
	return true
}

// LastLines returns the last n lines of a job's output, or none if the output is unavailable.
func LastLines(ctx context.Context, c *command.Client, id string, n int) []string {
	r, err := c.Request(ctx, http.MethodGet, command.OfJob(id, "/log"))
	if err != nil {
		return nil
	}
	defer func() { _ = r.Body.Close() }()
	var last []string
	lines := bufio.NewReader(r.Body)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			if last = append(last, line); len(last) > n {
				last = last[1:]
			}
		}
		if err != nil {
			return last
		}
	}
}

// Watch calls show on each change of the job until it is closed. It waits for an unreachable server, because another
// one may take over.
func Watch(ctx context.Context, a *command.App, c *command.Client, id string, show func(api.Job)) (api.Job, error) {
	var j api.Job
	for failed := 0; ; {
		var broken error
		for newer, err := range c.Watch(ctx, id) {
			if broken = err; err == nil {
				j, failed = newer, 0
				show(j)
			}
		}
		if j.Closed {
			return j, nil
		}
		broken = c.Said(ctx, broken)
		if problem, ok := errors.AsType[*api.Problem](broken); ok && problem.Code == api.JobUnknown {
			return j, broken
		}
		if why := wait.For(ctx, 300*time.Millisecond); why != nil {
			return j, why
		}
		if failed++; failed == 4 {
			a.Notef("\nThe server does not answer: starting another. The job goes on meanwhile.\n")
			another, err := a.Ensure(ctx, "")
			if err != nil {
				return j, err
			}
			c = another
		}
		if failed > 20 {
			return j, fmt.Errorf("follow %s: %w", id, broken)
		}
	}
}

// Detached prints a job that the command does not wait for.
func Detached(ctx context.Context, a *command.App, c *command.Client, j api.Job) error {
	a.Waiting(ctx, c)
	if a.JSON {
		return a.Print(j)
	}
	if j.State == "held" {
		a.Printf("%s is held: %s.\n\n", j.ID, j.Detail)
	} else {
		a.Printf("%s is queued.\n\n", j.ID)
	}
	a.Printf("%s", show.Next(j.ID))
	return nil
}

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/follow"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/terminal"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/wait"
)

// How often to look at a session that does not run yet, how many looks may fail before another server is started, and
// how many before the command gives up.
const (
	lookEvery = 500 * time.Millisecond
	looksOwn  = 4
	looksMost = 60
)

// visit follows a session over all machines that it gets.
type visit struct {
	*app
	c     *command.Client
	id    string
	kind  string // of the session
	said  string // the last state that the user was told
	left  int    // the attempt whose program has ended; 0: none
	noted bool   // the user knows how to leave
}

// running waits until the session's program runs on a machine, and returns the job then, or once it is closed.
func (v *visit) running(ctx context.Context) (api.Job, error) {
	for failed := 0; ; {
		j, err := v.c.Job(ctx, v.id)
		problem, answered := errors.AsType[*api.Problem](err)
		switch {
		case err == nil && (j.Closed || works(j) && j.Attempts > v.left):
			return j, nil
		case err == nil:
			failed = 0
			v.tell(j)
		case answered && problem.Status < 500:
			return j, err
		default:
			if failed++; failed == looksOwn {
				v.Notef("The server does not answer: starting another. The session goes on meanwhile.\n")
				if c, err := v.Ensure(ctx, ""); err == nil {
					v.c = c
				}
			}
			if failed > looksMost {
				return j, fmt.Errorf("enter %s: %w", v.id, err)
			}
		}
		if err := wait.For(ctx, lookEvery); err != nil {
			return j, err
		}
	}
}

// works reports whether the session's program runs.
func works(j api.Job) bool { return j.State == "running" && j.Phase == "running" }

// tell tells the user what the session waits for, when that changes.
func (v *visit) tell(j api.Job) {
	said := j.State + j.Phase + j.Machine
	if said == v.said {
		return
	}
	v.said = said
	v.Notef("%s\n", (&show.Follow{}).Progress(j, v.Line()))
}

// enter attaches the terminal to the session until it ends or the user leaves.
func (a *app) enter(ctx context.Context, c *command.Client, id string, screen *os.File) error {
	v := &visit{app: a, c: c, id: id, kind: shell}
	keys := terminal.Read(a.In)
	for {
		j, err := v.running(ctx)
		if err != nil {
			return v.leave(ctx, err)
		}
		if j.Closed {
			return v.over(ctx, j)
		}
		if !v.noted {
			a.Notef("%s runs on %s%s. Ctrl-] leaves it running; exit saves its files and ends it.\n", j.ID, j.Offer, perHour(j))
			v.noted = true
		}
		s := terminal.Session{Client: v.c, Job: id, Exec: api.Exec{Attach: true, Command: []string{"attach"}}, Out: a.Out,
			Keys: keys, Screen: screen, Detaches: true}
		end, err := s.Run(ctx)
		if errors.Is(err, terminal.ErrDetached) || ctx.Err() != nil {
			return v.leave(ctx, err)
		}
		if err := v.lost(ctx, j, end, err); err != nil {
			return err
		}
	}
}

// errNotYet means that a session's program is still starting.
var errNotYet = errors.New("the notebook is not ready yet")

// lost handles the end of a connection to a session, and returns an error if another one cannot help.
func (v *visit) lost(ctx context.Context, j api.Job, end api.ExecOutput, err error) error {
	problem, answered := errors.AsType[*api.Problem](err)
	switch {
	case answered && problem.Status < 500 && problem.Status != 409:
		return err
	case err == nil && end.Over && end.Error == "":
		v.left = j.Attempts // its program has ended: another attempt follows, or none
	case errors.Is(err, errNotYet):
	case errors.Is(err, terminal.ErrBroken):
		v.Notef("\nThe connection was lost. The session goes on; reconnecting.\n")
	}
	v.said = ""
	return wait.For(ctx, lookEvery)
}

// leave tells a user who leaves a session how long it goes on and what that costs.
func (v *visit) leave(ctx context.Context, err error) error {
	if !errors.Is(err, terminal.ErrDetached) && ctx.Err() == nil {
		return err
	}
	if v.kind == "" {
		v.Notef("\nNo port is forwarded any more; %s goes on.\n", v.id)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	until := "."
	if j, err := v.c.Job(ctx, v.id); err == nil {
		until = perHour(j) + limits(j, v.Now()) + "."
	}
	v.Notef("\n%s", draw.Wrap("", fmt.Sprintf("Detached: %s goes on%s scrimp %s %s comes back to it, scrimp stop %s "+
		"saves its files and ends it.", v.id, until, v.kind, v.id, v.id), v.Line().Columns()))
	return nil
}

// over prints what a session that has ended has cost, and how to go on with it.
func (v *visit) over(ctx context.Context, j api.Job) error {
	if v.kind == "" {
		v.Notef("%s is over: %s.\n", j.ID, j.State)
		return nil
	}
	if j.State == "failed" || j.Started == nil {
		if err := follow.Closed(ctx, v.App, v.c, j); err != nil {
			return err
		}
		return command.JobFailed
	}
	v.Notef("%s", draw.Wrap("", fmt.Sprintf("%s is over: %s. It cost %s (scrimp receipt %s). scrimp %s --resume %s%s "+
		"goes on with its files.", j.ID, why(j), money.Short(j.Spent, j.Currency), j.ID, v.kind, j.ID, more(j)),
		v.Line().Columns()))
	return nil
}

// more returns what a resumption needs besides the name.
func more(j api.Job) string {
	if strings.HasPrefix(j.Why, "budget_") {
		return " --budget with a larger amount"
	}
	return ""
}

// why describes why a session has ended.
func why(j api.Job) string {
	switch j.Why {
	case "session_left":
		return "its program has exited"
	case "machine_idle":
		return "nobody used it"
	}
	return show.Words(j.Why)
}

// reason describes why a session has ended before it was entered, with the server's own sentence if there is one.
func reason(j api.Job) string {
	if j.Detail != "" {
		return why(j) + ": " + show.Clean(j.Detail)
	}
	return why(j)
}

// perHour returns what a session costs an hour, as a part of a sentence.
func perHour(j api.Job) string {
	if j.Rate == nil {
		return ""
	}
	return " for " + show.PerHour(*j.Rate, j.Currency)
}

// limits returns until when a session goes on, as a part of a sentence.
func limits(j api.Job, now time.Time) string {
	text := ""
	if j.IdleLimit != nil {
		text = ", until nobody has used it for " + show.Seconds(*j.IdleLimit)
	}
	if end, ok := spentAt(j, now); ok {
		if text != "" {
			text += " or"
		} else {
			text = ", until"
		}
		text += " its budget of " + money.Short(*j.Budget, j.Currency) + " is spent, in " +
			draw.Span(end.Sub(now).Round(time.Second))
	}
	return text
}

// spentAt returns when the budget of a session that runs will be spent; ok is false if that is unknown.
func spentAt(j api.Job, now time.Time) (at time.Time, ok bool) {
	if j.Budget == nil || j.Rate == nil || j.Finished != nil {
		return at, false
	}
	span, ok := j.Rate.Buys(j.Budget.Sub(j.Spent))
	if !ok || j.Speed <= 0 {
		return at, false
	}
	return now.Add(max(0, time.Duration(float64(span)/j.Speed))), true
}

// endsAt returns when a session that holds a machine ends if nobody uses it from now on, and what ends it then: idle or
// budget. ok is false if that is unknown.
func endsAt(j api.Job, now time.Time) (at time.Time, what string, ok bool) {
	if at, ok = spentAt(j, now); ok {
		what = "budget"
	}
	if j.IdleLimit != nil && j.State == "running" {
		since := now
		if j.IdleSince != nil {
			since = *j.IdleSince
		}
		idle := since.Add(time.Duration(*j.IdleLimit * float64(time.Second)))
		if !ok || idle.Before(at) {
			return idle, "idle", true
		}
	}
	return at, what, ok
}

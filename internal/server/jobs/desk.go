// Package jobs shows jobs and their changes to users, who can end, pause, review and update them.
package jobs

import (
	"context"
	"net/http"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/turn"
	"scrimp/internal/store/logfile"
	"scrimp/internal/view"
)

// Log is the part of the store that the core does not keep in memory.
type Log interface {
	ReadLog(ctx context.Context, attempt string, offset int64, limit int) ([]byte, error)
	LogEnd(ctx context.Context, attempt string) (int64, error)
	LogTimes(ctx context.Context, attempt string, skip int) ([]logfile.Time, error)
}

// Odds forecasts whether jobs meet their deadlines.
type Odds interface {
	InTime(job string) *float64
	Outlook(job string) *client.JobOutlook
	Estimate(job string) *client.JobEstimate
	Forget(job string)
}

// Desk answers requests about jobs.
type Desk struct {
	Gate    *auth.Gate
	Control *control.Control
	Log     Log
	View    *view.View // says which jobs events concern
	Turns   *turn.Turns
	Vault   secret.Vault
	Odds    Odds
	// Removed returns which of a job's files were removed to make room.
	Removed  func(ctx context.Context, job string) (client.Removed, error)
	Settled  func(ctx context.Context) *reply.Refusal // why the core lacks the limits in force; nil: it has them
	Machines Machines
	// Notices returns the reports about a job, and those that a receiver did not get.
	Notices func(job string) ([]client.Notice, []client.Undelivered)

	feed                *feed
	watching            share
	execPace, termsPace *auth.Pace
}

// New returns a desk with the given dependencies.
func New(d Desk) *Desk {
	d.feed, d.watching = newFeed(&d), newShare()
	d.execPace, d.termsPace = auth.NewBurst(execRate, execBurst), auth.NewBurst(termsRate, termsBurst)
	return &d
}

// Rate limits of a user for commands, and for pauses, resumptions and updates of jobs. The log keeps each for ever,
// and a user could repeat them on one job without end.
const (
	execRate, execBurst   = 1, 60 // per second, and burst
	termsRate, termsBurst = 5, 300
)

// allowed applies the caller's rate limit, and reports whether the request may go on. If not, it answers with
// what to do instead.
func allowed(w http.ResponseWriter, r *http.Request, pace *auth.Pace, instead string) bool {
	ok, wait := pace.TakeMany(auth.CallerOf(r).User, 1, time.Now())
	if !ok {
		auth.Slower(w, wait, instead)
	}
	return ok
}

// oneChange is the advice to a caller who makes many changes.
const oneChange = "one request changes several terms of a job"

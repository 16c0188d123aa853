// Package jobs shows jobs to users as they change, and lets users end, pause, review and change them.
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
	"scrimp/internal/store"
	"scrimp/internal/store/logfile"
)

// Log is what the core does not keep in memory.
type Log interface {
	WholeRecords(ctx context.Context, after uint64, limit int) ([]store.Record, error)
	ReadLog(ctx context.Context, attempt string, offset int64, limit int) ([]byte, error)
	LogEnd(ctx context.Context, attempt string) (int64, error)
	LogTimes(ctx context.Context, attempt string, skip int) ([]logfile.Time, error)
}

// Odds say how likely a job is done in time.
type Odds interface {
	InTime(job string) *float64
	Forget(job string)
}

// Desk is where users see and change jobs.
type Desk struct {
	Gate    *auth.Gate
	Control *control.Control
	Log     Log
	Turns   *turn.Turns
	Vault   secret.Vault
	Odds    Odds
	// Removed says what of a job was removed to make room.
	Removed  func(ctx context.Context, job string) (client.Removed, error)
	Settled  func(ctx context.Context) *reply.Refusal // why the limits are not those in force, nil: they are
	Machines Machines

	feed                *feed
	past                *past
	watching            share
	execPace, termsPace *auth.Pace
}

// New is a desk that has what d has.
func New(d Desk) *Desk {
	d.feed, d.past, d.watching = newFeed(&d), &past{}, newShare()
	d.execPace, d.termsPace = auth.NewBurst(execRate, execBurst), auth.NewBurst(termsRate, termsBurst)
	return &d
}

// How often one user begins commands, and pauses, resumes and changes jobs: each stands in the log for ever, and could
// be done without end to one job.
const (
	execRate, execBurst   = 1, 60 // a second, and at once
	termsRate, termsBurst = 5, 300
)

// atTheirPace reports whether the caller may do something now, or answers that they do it too often, with what to do
// instead.
func atTheirPace(w http.ResponseWriter, r *http.Request, pace *auth.Pace, instead string) bool {
	ok, wait := pace.TakeMany(auth.CallerOf(r).User, 1, time.Now())
	if !ok {
		auth.Slower(w, wait, instead)
	}
	return ok
}

// oneChange is what to do instead of many changes.
const oneChange = "one request changes several terms of a job"

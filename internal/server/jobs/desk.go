// Package jobs shows jobs to users as they change, and lets users end, pause, review and change them.
package jobs

import (
	"context"

	"scrimp/internal/api"
	"scrimp/internal/control"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/turn"
	"scrimp/internal/store"
)

// Log is what the core does not keep in memory.
type Log interface {
	WholeRecords(ctx context.Context, after uint64, limit int) ([]store.Record, error)
	ReadLog(ctx context.Context, attempt string, offset int64, limit int) ([]byte, error)
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
	Settled func(ctx context.Context) *reply.Refusal // why the limits are not those in force, nil: they are
	// Exec runs a command on the machine of an attempt.
	Exec func(ctx context.Context, attempt string, command []string) (api.ExecResult, error)

	feed *feed
}

// New is a desk that has what d has.
func New(d Desk) *Desk {
	d.feed = newFeed(&d)
	return &d
}

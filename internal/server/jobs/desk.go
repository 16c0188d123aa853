// Package jobs shows jobs and their changes to users, who can end, pause, review and update them.
package jobs

import (
	"context"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs/watchers"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/turn"
	"scrimp/internal/view"
)

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
	View    *view.View // says which jobs events concern
	Turns   *turn.Turns
	Vault   secret.Vault
	Odds    Odds
	// Removed returns which of a job's files were removed to make room.
	Removed func(ctx context.Context, job string) (client.Removed, error)
	Settled func(ctx context.Context) *reply.Refusal // why the core lacks the limits in force; nil: it has them
	// Notices returns the reports about a job, and those that a receiver did not get.
	Notices func(job string) ([]client.Notice, []client.Undelivered)

	feed     *feed
	watching watchers.Share
}

// New returns a desk with the given dependencies.
func New(d Desk) *Desk {
	d.feed, d.watching = newFeed(&d), watchers.New()
	return &d
}

// Share returns the time of the server that watchers of this desk share.
func (d *Desk) Share() watchers.Share { return d.watching }

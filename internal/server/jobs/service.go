// Package jobs shows jobs and their changes to users, who can end, pause, review and update them.
package jobs

import (
	"context"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs/watchers"
	"scrimp/internal/server/keymutex"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/secret"
	"scrimp/internal/view"
)

// Odds forecasts whether jobs meet their deadlines.
type Odds interface {
	InTime(job string) *float64
	Outlook(job string) *client.JobOutlook
	Estimate(job string) *client.JobEstimate
	Forget(job string)
}

// Service answers requests about jobs.
type Service struct {
	Gate    *auth.Gate
	Control *control.Control
	View    *view.View // says which jobs events concern
	Turns   *keymutex.Turns
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

// New returns a service with the given dependencies.
func New(d Service) *Service {
	d.feed, d.watching = newFeed(&d), watchers.New()
	return &d
}

// Share returns the time of the server that watchers of this service share.
func (d *Service) Share() watchers.Share { return d.watching }

// Package view holds the projections of the log that pages and receipts read: the events with decisions about a job and
// those with reports of its programs, where the records of archived jobs and groups are, the recorded market, the jobs
// that each event concerns, and the audit trail by user and route.
package view

import (
	"context"

	"scrimp/internal/store"
	"scrimp/internal/view/projection"
)

// Log is the log without its projections.
type Log interface {
	WholeRecords(ctx context.Context, after uint64, limit int) ([]store.Record, error)
	RecordsAt(ctx context.Context, numbers []uint64) ([]store.Record, error)
}

// piece is the number of events read at once.
const piece = 1000

// View reads the projections by job.
type View struct {
	log      Log
	follower *projection.Follower
}

// Projections returns those that a view reads.
func Projections() []projection.Projection {
	return []projection.Projection{ofJobs, ofArchived, ofSearch, ofArchivedGroups, ofPrices, ofTouched, ofActs}
}

// New returns a view on a follower that has Projections.
func New(log Log, f *projection.Follower) *View { return &View{log: log, follower: f} }

// Package view indexes the log by job, as projections: the events with decisions about a job and those with reports of
// its programs, and where the records of archived jobs are. A reader of one job reads these events instead of the whole
// log.
package view

import (
	"context"

	"scrimp/internal/store"
	"scrimp/internal/view/projection"
)

// Log is the log without its projections.
type Log interface {
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
func Projections() []projection.Projection { return []projection.Projection{ofJobs, ofArchived} }

// New returns a view on a follower that has Projections.
func New(log Log, f *projection.Follower) *View { return &View{log: log, follower: f} }

package store

import (
	"context"
)

// Projections are rows that follow from the log alone. They are written some time after the log, with a mark of how far
// they have read it, and are rebuilt if they are lost or belong to another log. Package projection fills and reads
// them.

// Mark is how far a projection has read the log.
type Mark struct {
	Seq  uint64 // last event read; 0: none
	Kept uint64 // last kept event up to Seq; 0: none
	Sum  string // digest of that event's text, which differs in another log
}

// A Change is the new content of a row.
type Change struct {
	Value  []byte
	Append bool // add Value to the end of the row, which it creates if it does not exist
	Delete bool // remove the row
}

// Row is a row of a projection.
type Row struct {
	Key   string
	Value []byte
}

// Range selects rows of a projection by key, in byte order.
type Range struct {
	After, Before string // exclusive; Before "": no end
	Limit         int
	Backwards     bool // the last rows of the range instead of the first
}

// ProjectionStore holds the rows of all projections, by name. Each Store implements it.
type ProjectionStore interface {
	// Marks returns how far each projection has read the log.
	Marks(ctx context.Context) (map[string]Mark, error)
	// Project changes rows of some projections, which are all at from, and moves their marks: everything or nothing.
	// It fails with ErrConflict if a mark is not at from, because another server has moved it. A projection without
	// rows is at the zero mark; changes are by projection and key.
	Project(ctx context.Context, from, to Mark, changes map[string]map[string]Change) error
	// DropProjection removes a projection with its rows; it succeeds if there is none.
	DropProjection(ctx context.Context, name string) error
	// Rows returns the values of those keys that exist.
	Rows(ctx context.Context, projection string, keys []string) (map[string][]byte, error)
	// RowRange returns rows in the order of their keys.
	RowRange(ctx context.Context, projection string, r Range) ([]Row, error)
	// RecordsAt returns the existing records with those numbers, without their postings, in the order of the log.
	RecordsAt(ctx context.Context, numbers []uint64) ([]Record, error)
}

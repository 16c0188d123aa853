package store

import (
	"context"
	"errors"
	"math"
)

// The view's tables index the log by job. They are written some time after the log, with a mark of how far they have
// read it, and are rebuilt if they are lost or belong to another log. Package view fills and reads them.

// ViewMark is how far the view has read the log.
type ViewMark struct {
	Seq  uint64 // last event read; 0: none
	Kept uint64 // last kept event up to Seq; 0: none
	Sum  string // digest of that event's text, which differs in another log
}

// ViewRows is what some events add to the view.
type ViewRows struct {
	Events map[string][]byte // by job: bytes to append to the numbers of its events
	// Archived locates the jobs that left the state, by name; zero means that the job is back.
	Archived map[string]ArchivedRow
}

// ArchivedRow locates an archived job.
type ArchivedRow struct {
	Seq   uint64 // the event whose facts contain its record
	Order uint64 // of its submission
	State string
	Name  string // set only in a page
}

// ViewStore holds the view's tables. Each Store implements it.
type ViewStore interface {
	// ViewMark returns how far the view has read the log.
	ViewMark(ctx context.Context) (ViewMark, error)
	// MoveView adds rows and moves the mark, both or neither. It fails with ErrConflict if the mark is not at from,
	// because another server has moved it.
	MoveView(ctx context.Context, from, to ViewMark, rows ViewRows) error
	// ClearView empties the tables, so that they are rebuilt from the log.
	ClearView(ctx context.Context) error
	// JobEvents returns what MoveView has appended for the job.
	JobEvents(ctx context.Context, job string) ([]byte, error)
	// Archived returns which of the jobs are archived.
	Archived(ctx context.Context, jobs []string) (map[string]ArchivedRow, error)
	// ArchivedPage returns at most limit archived jobs in order of submission, in the given state or in any. Their
	// orders lie between two limits; a backwards page returns the last ones, otherwise the first.
	ArchivedPage(ctx context.Context, p ArchivedPage) ([]ArchivedRow, error)
	// RecordsAt returns the existing records with those numbers, without their postings, in the order of the log.
	RecordsAt(ctx context.Context, numbers []uint64) ([]Record, error)
}

// ArchivedPage selects archived jobs.
type ArchivedPage struct {
	After, Before uint64 // orders of submission, exclusive; Before 0: no end
	State         string // empty: any
	Limit         int
	Backwards     bool
}

// end returns the order before which the page ends, as a database integer.
func (p ArchivedPage) end() int64 {
	if p.Before == 0 {
		return math.MaxInt64
	}
	return int64(p.Before)
}

// query returns the SQL of a page; its arguments are after, end, state and limit.
func (p ArchivedPage) query(table string, arg func(int) string) string {
	direction := ""
	if p.Backwards {
		direction = " DESC"
	}
	return "SELECT seq, submitted, state, name FROM " + table + " WHERE submitted > " + arg(1) + " AND submitted < " +
		arg(2) + " AND (" + arg(3) + " = '' OR state = " + arg(3) + ") ORDER BY submitted" + direction + " LIMIT " + arg(4)
}

// errViewMoved is the error if another server has moved the mark.
func errViewMoved() error { return errors.Join(errors.New("move the view of the log"), ErrConflict) }

// signed converts event numbers to database integers.
func signed(numbers []uint64) []int64 {
	list := make([]int64, len(numbers))
	for i, n := range numbers {
		list[i] = int64(n)
	}
	return list
}

package store

import (
	"context"
	"errors"
	"math"
)

// Tables that follow the log say again, by job, what the log says in its order. They are
// written some time after the log, with the mark of how far they have read, and are made
// anew from it where they are lost or of another log. Package view fills and reads them.

// ViewMark is how far the tables that follow the log have read it.
type ViewMark struct {
	Seq  uint64 // read up to here; 0: nothing
	Kept uint64 // the last event up to there that is no sample; 0: none
	Sum  string // of that event's text: another log has another
}

// ViewRows is what some events add to the tables that follow the log.
type ViewRows struct {
	Events map[string][]byte // by job: to be appended to the numbers of the events about it
	// Archived are the jobs that left the state, by name, where they are; zero: it is back.
	Archived map[string]ArchivedRow
}

// ArchivedRow says where an archived job is.
type ArchivedRow struct {
	Seq   uint64 // the event whose facts have its record
	Order uint64 // of its submission
	State string
	Name  string // where a page is read
}

// ViewStore keeps the tables that follow the log. It is a part of each Store.
type ViewStore interface {
	// ViewMark is how far the tables have read the log.
	ViewMark(ctx context.Context) (ViewMark, error)
	// MoveView adds rows and moves the mark, both or none. It fails with ErrConflict where
	// the mark is not at from: another server has moved it.
	MoveView(ctx context.Context, from, to ViewMark, rows ViewRows) error
	// ClearView empties the tables: they are made anew from the log.
	ClearView(ctx context.Context) error
	// JobEvents is what MoveView has appended for the job.
	JobEvents(ctx context.Context, job string) ([]byte, error)
	// Archived returns which of the jobs are archived.
	Archived(ctx context.Context, jobs []string) (map[string]ArchivedRow, error)
	// ArchivedPage returns at most limit archived jobs in one of the states, of any state
	// where none is named, whose orders of submission lie between two: the first of them, or
	// the last where it goes backwards, in order.
	ArchivedPage(ctx context.Context, p ArchivedPage) ([]ArchivedRow, error)
	// RecordsAt returns the records of those numbers that are there, without their
	// postings, in the order of the log.
	RecordsAt(ctx context.Context, numbers []uint64) ([]Record, error)
}

// ArchivedPage says which archived jobs are wanted.
type ArchivedPage struct {
	After, Before uint64 // orders of submission, which are not wanted themselves; Before 0: no end
	State         string // "": any
	Limit         int
	Backwards     bool
}

// end is the order before which the page ends, as databases take it.
func (p ArchivedPage) end() int64 {
	if p.Before == 0 {
		return math.MaxInt64
	}
	return int64(p.Before)
}

// query is that of a page, for columns of the place; its arguments are after, end, state and limit.
func (p ArchivedPage) query(table string, arg func(int) string) string {
	direction := ""
	if p.Backwards {
		direction = " DESC"
	}
	return "SELECT seq, submitted, state, name FROM " + table + " WHERE submitted > " + arg(1) + " AND submitted < " +
		arg(2) + " AND (" + arg(3) + " = '' OR state = " + arg(3) + ") ORDER BY submitted" + direction + " LIMIT " + arg(4)
}

// errViewMoved says whose the tables are.
func errViewMoved() error { return errors.Join(errors.New("move the view of the log"), ErrConflict) }

// signed are numbers of events as databases take them.
func signed(numbers []uint64) []int64 {
	list := make([]int64, len(numbers))
	for i, n := range numbers {
		list[i] = int64(n)
	}
	return list
}

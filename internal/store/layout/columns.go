package layout

import (
	"errors"
	"time"

	"scrimp/internal/store"
)

// RangeQuery returns the SQL of a range and its arguments after the projection, which is the first.
func RangeQuery(r store.Range, table string, arg func(int) string) (text string, args []any) {
	text = "SELECT key, value FROM " + table + " WHERE projection = (SELECT id FROM projection WHERE name = " + arg(1) +
		") AND key > " + arg(2)
	args = []any{r.After}
	if r.Before != "" {
		text, args = text+" AND key < "+arg(3), append(args, r.Before)
	}
	direction := ""
	if r.Backwards {
		direction = " DESC"
	}
	return text + " ORDER BY key" + direction + " LIMIT " + arg(len(args)+2), append(args, r.Limit)
}

// ErrMoved is the error if another server has moved the mark of a projection.
func ErrMoved(name string) error {
	return errors.Join(errors.New("move the projection "+name), store.ErrConflict)
}

// Signed converts event numbers to database integers.
func Signed(numbers []uint64) []int64 {
	list := make([]int64, len(numbers))
	for i, n := range numbers {
		list[i] = int64(n)
	}
	return list
}

// ScanMark reads a row of either database.
func ScanMark(m *store.Mark, scan func(...any) error, name *string) error {
	var seq, kept int64
	err := scan(name, &seq, &kept, &m.Sum)
	m.Seq, m.Kept = uint64(seq), uint64(kept)
	return err
}

// ScanRecord reads a row of either database; the caller passes the destinations of tenant and kind.
func ScanRecord(r *store.Record, scan func(...any) error, tenant, kind any) error {
	var seq, gap, at int64
	var event, facts []byte
	if err := scan(&seq, &gap, tenant, &at, kind, &r.Key, &event, &facts, &r.Sample); err != nil {
		return err
	}
	r.Seq, r.Kept, r.At, r.Event = uint64(seq), uint64(seq-gap-1), time.Unix(0, at).UTC(), event
	if len(facts) > 0 {
		r.Facts = facts
	}
	return nil
}

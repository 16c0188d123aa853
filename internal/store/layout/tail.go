package layout

import (
	"errors"
	"fmt"
	"math"

	"scrimp/internal/store"
)

// Tail is the end of a log: its last record and its last kept record.
type Tail struct{ End, Kept uint64 }

// Follow checks that records continue the log and that each posting names its record. It returns the number of
// samples between each record and the kept one before it, and the new tail. If holes is true, dropped samples may
// have been in the gaps: each record names the kept one before it.
func (t Tail) Follow(records []store.Record, holes bool) (gaps []int64, next Tail, err error) {
	gaps = make([]int64, len(records))
	for i, r := range records {
		switch {
		case holes && (r.Seq <= t.End || r.Kept != t.Kept):
			return nil, t, fmt.Errorf("append event %d after event %d: the log ends at %d after event %d: %w",
				r.Seq, r.Kept, t.End, t.Kept, store.ErrConflict)
		case !holes && r.Seq != t.End+1:
			return nil, t, fmt.Errorf("append event %d: the log wants %d: %w", r.Seq, t.End+1, store.ErrConflict)
		case r.Sample && (len(r.Facts) > 0 || len(r.Postings) > 0):
			return nil, t, fmt.Errorf("append event %d: a sample cannot have facts or postings", r.Seq)
		case r.Seq-1-t.Kept > math.MaxInt32:
			return nil, t, errors.New("append: 2,147,483,647 samples without an event between them")
		}
		for _, p := range r.Postings {
			if p.Event != r.Seq {
				return nil, t, fmt.Errorf("append event %d: a posting of event %d is among its own", r.Seq, p.Event)
			}
		}
		gaps[i] = int64(r.Seq - 1 - t.Kept)
		t.End = r.Seq
		if !r.Sample {
			t.Kept = r.Seq
		}
	}
	return gaps, t, nil
}

// Needed returns an error if the older snapshot needs samples up to upTo; older is 0 if there is no snapshot.
func Needed(upTo, older uint64) error {
	switch {
	case upTo <= older:
		return nil
	case older == 0:
		return fmt.Errorf("drop samples up to %d: there is no snapshot: %w", upTo, store.ErrNeeded)
	}
	return fmt.Errorf("drop samples up to %d: the older snapshot is of event %d: %w", upTo, older, store.ErrNeeded)
}

// Slice is the number of samples dropped in one transaction; appends wait behind it.
const Slice = 1000

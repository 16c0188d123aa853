package store

import (
	"errors"
	"fmt"
	"math"
)

// Kept records are linked: each record, sample or not, says which kept one is
// before it (as the number of samples between them, which is nearly always none).
// So a kept record that is missing is found by the next record that is there, also
// when all samples are gone. The last record of the log is never dropped.

// MissingError says which records of the log are not there and should be.
type MissingError struct{ First, Last uint64 }

func (e *MissingError) Error() string {
	return fmt.Sprintf("events %d to %d are missing from the log", e.First, e.Last)
}

// Chain follows the log as it is read, in order, and finds what is missing from it.
type Chain struct {
	After   uint64 // read up to here; 0: nothing
	Dropped uint64 // up to here samples may have been dropped: for a reader that goes on from a snapshot, its Seq

	kept  uint64 // the last kept record that was read
	known bool   // what it is
}

// Add takes the next record. It fails with a *MissingError where one is missing
// between it and what was read before.
func (c *Chain) Add(r Record) error {
	if r.Seq <= c.After {
		return fmt.Errorf("event %d stands after event %d in the log", r.Seq, c.After)
	}
	known := c.known || c.After == 0 // else reading began within the log
	switch {
	case r.Kept > c.After:
		return &MissingError{c.After + 1, r.Seq - 1}
	case r.Seq-1 > max(c.After, c.Dropped):
		return &MissingError{max(c.After, c.Dropped) + 1, r.Seq - 1}
	case known && r.Kept != c.kept:
		return fmt.Errorf("event %d says that it follows event %d, and it follows event %d", r.Seq, r.Kept, c.kept)
	}
	c.After, c.kept, c.known = r.Seq, r.Kept, true
	if !r.Sample {
		c.kept = r.Seq
	}
	return nil
}

// AddAll is Add of each.
func (c *Chain) AddAll(records []Record) error {
	for _, r := range records {
		if err := c.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// Ends checks that what was read is all up to the log's end.
func (c *Chain) Ends(end uint64) error {
	if c.After < end {
		return &MissingError{c.After + 1, end}
	}
	return nil
}

// tail is where a log ends: its last record, and the last one that is kept.
type tail struct{ end, kept uint64 }

// follow checks that records continue the log and that each posting says which
// record it belongs to. It returns how many samples lie between each and the kept
// record before it, and the new tail. Where holes may be, samples were in them: each
// record names the kept one before it.
func (t tail) follow(records []Record, holes bool) (gaps []int64, next tail, err error) {
	gaps = make([]int64, len(records))
	for i, r := range records {
		switch {
		case holes && (r.Seq <= t.end || r.Kept != t.kept):
			return nil, t, fmt.Errorf("append event %d after event %d: the log ends at %d after event %d: %w",
				r.Seq, r.Kept, t.end, t.kept, ErrConflict)
		case !holes && r.Seq != t.end+1:
			return nil, t, fmt.Errorf("append event %d: the log wants %d: %w", r.Seq, t.end+1, ErrConflict)
		case r.Sample && (len(r.Facts) > 0 || len(r.Postings) > 0):
			return nil, t, fmt.Errorf("append event %d: it has facts or postings, so it is no sample", r.Seq)
		case r.Seq-1-t.kept > math.MaxInt32:
			return nil, t, errors.New("append: 2,147,483,647 samples without an event between them")
		}
		for _, p := range r.Postings {
			if p.Event != r.Seq {
				return nil, t, fmt.Errorf("append event %d: a posting of event %d is among its own", r.Seq, p.Event)
			}
		}
		gaps[i] = int64(r.Seq - 1 - t.kept)
		t.end = r.Seq
		if !r.Sample {
			t.kept = r.Seq
		}
	}
	return gaps, t, nil
}

// needed refuses to drop samples that the older of the snapshots needs; 0 is none.
func needed(upTo, older uint64) error {
	switch {
	case upTo <= older:
		return nil
	case older == 0:
		return fmt.Errorf("drop samples up to %d: there is no snapshot: %w", upTo, ErrNeeded)
	}
	return fmt.Errorf("drop samples up to %d: the older snapshot is of event %d: %w", upTo, older, ErrNeeded)
}

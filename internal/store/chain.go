package store

import (
	"fmt"
)

// Kept records (those that are not samples) are linked: each record names the kept record before it, as the number of
// samples between them, which is nearly always zero. So the next existing record reveals a missing kept one, even if
// all samples are gone. The last record of the log is never dropped.

// MissingError gives the range of records that the log lacks.
type MissingError struct{ First, Last uint64 }

func (e *MissingError) Error() string {
	return fmt.Sprintf("events %d to %d are missing from the log", e.First, e.Last)
}

// Chain finds missing records while a caller reads the log in order.
type Chain struct {
	After   uint64 // last record read; 0: none
	Dropped uint64 // samples up to here may have been dropped; a reader that continues from a snapshot sets its Seq

	kept  uint64 // last kept record read
	known bool   // kept is known
}

// Add checks the next record. It returns a *MissingError if a record is missing between it and the one before.
func (c *Chain) Add(r Record) error {
	if r.Seq <= c.After {
		return fmt.Errorf("event %d follows event %d in the log", r.Seq, c.After)
	}
	known := c.known || c.After == 0 // otherwise reading started in the middle of the log
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

// AddAll calls Add for each record.
func (c *Chain) AddAll(records []Record) error {
	for _, r := range records {
		if err := c.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// Ends checks that everything up to the log's end has been read.
func (c *Chain) Ends(end uint64) error {
	if c.After < end {
		return &MissingError{c.After + 1, end}
	}
	return nil
}

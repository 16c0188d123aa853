// Package projection follows the log and derives rows from it: each Projection says which rows an event adds or
// changes, and one Follower reads the log for all of them. The rows are stored beside the log and follow from it alone.
// A projection whose version has changed, or whose rows are lost, is rebuilt in the background.
package projection

import (
	"context"
	"fmt"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
)

// A Projection derives rows from the log. Its rows depend only on the records and on its version.
type Projection struct {
	Name string
	// Version is the number of the form of the rows. The follower rebuilds the projection when it changes.
	Version int
	// Apply changes the rows for the next record of the log. The records come in order, each once; some of the samples
	// may be missing.
	Apply func(ctx context.Context, r *Record, rows *Rows) error
}

// stored returns the name under which the store keeps the rows.
func (p Projection) stored() string { return fmt.Sprintf("%s/%d", p.Name, p.Version) }

// Record is a record of the log with its decoded facts, which all projections share.
type Record struct {
	store.Record
	facts   []state.Fact
	decoded bool
}

// Decode returns the facts of the record.
func (r *Record) Decode() ([]state.Fact, error) {
	if r.decoded || len(r.Facts) == 0 {
		return r.facts, nil
	}
	facts, err := state.DecodeFacts(r.Facts)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", r.Seq, err)
	}
	r.facts, r.decoded = facts, true
	return facts, nil
}

// Rows are the rows of a projection while it applies records. The store gets the changes of many records at once.
type Rows struct {
	projection string
	log        Log
	changes    map[string]store.Change
	read       map[string][]byte // rows that Get has read from the store; nil: no such row
}

// Put sets a row. The caller does not change value afterwards.
func (r *Rows) Put(key string, value []byte) { r.changes[key] = store.Change{Value: value} }

// Delete removes a row if it exists.
func (r *Rows) Delete(key string) { r.changes[key] = store.Change{Delete: true} }

// Append adds bytes to the end of a row, which it creates if it does not exist. It does not read the row.
func (r *Rows) Append(key string, value []byte) {
	c, changed := r.changes[key]
	if !changed {
		c.Append = true
	}
	c.Delete = false
	c.Value = append(c.Value, value...)
	r.changes[key] = c
}

// Get returns a row, or nil if it does not exist. The caller does not change it.
func (r *Rows) Get(ctx context.Context, key string) ([]byte, error) {
	c, changed := r.changes[key]
	if changed && !c.Append {
		return c.Value, nil
	}
	before, known := r.read[key]
	if !known {
		rows, err := r.log.Rows(ctx, r.projection, []string{key})
		if err != nil {
			return nil, err
		}
		before = rows[key]
		r.read[key] = before
	}
	if changed {
		c = store.Change{Value: append(append([]byte{}, before...), c.Value...)}
		r.changes[key] = c
		return c.Value, nil
	}
	return before, nil
}

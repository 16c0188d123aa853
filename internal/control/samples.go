package control

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/store"
)

// keepSamples is how long the log keeps samples, which only feed estimates, in market time. Job pages show their
// curves, and a restart reads those after the older of two snapshots.
const keepSamples = 7 * 24 * time.Hour

// dropSamples deletes samples that are older than keepSamples and contained in both snapshots; upTo is the older
// snapshot.
func (c *Control) dropSamples(ctx context.Context, upTo uint64) {
	seq, err := c.lastBefore(ctx, upTo, c.Now().Add(-keepSamples))
	if err == nil && seq > 0 {
		_, err = c.store.DropSamples(ctx, seq)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrNeeded) {
		c.cfg.Log.Warn("old samples not deleted; the next snapshot tries again", "error", err)
	}
}

// lastBefore returns the number of the last event up to upTo that happened before t; 0 if there is none. Events are
// ordered by time.
func (c *Control) lastBefore(ctx context.Context, upTo uint64, t time.Time) (uint64, error) {
	low, high := uint64(0), upTo // low happened before t, or is 0
	for low < high {
		middle := low + (high-low+1)/2
		records, err := c.store.Records(ctx, middle-1, 1)
		if err != nil {
			return 0, err
		}
		if len(records) == 1 && records[0].Seq <= upTo && records[0].At.Before(t) {
			low = records[0].Seq
		} else {
			high = middle - 1
		}
	}
	return low, nil
}

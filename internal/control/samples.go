package control

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/store"
)

// keepSamples is how long events that only teach are kept, by market time: a page of a
// job shows their curves, and a restart reads those after the older of two snapshots.
const keepSamples = 7 * 24 * time.Hour

// dropSamples deletes the samples that are older than that and that both snapshots have
// learned from; upTo is the older of them.
func (c *Control) dropSamples(ctx context.Context, upTo uint64) {
	seq, err := c.lastBefore(ctx, upTo, c.Now().Add(-keepSamples))
	if err == nil && seq > 0 {
		_, err = c.store.DropSamples(ctx, seq)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrNeeded) {
		c.cfg.Log.Warn("old samples not deleted; the next snapshot tries again", "error", err)
	}
}

// lastBefore is the number of the last event up to one that happened before a time; 0:
// none did. Events stand in the order of their times.
func (c *Control) lastBefore(ctx context.Context, upTo uint64, t time.Time) (uint64, error) {
	low, high := uint64(0), upTo // low happened before, or is 0
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

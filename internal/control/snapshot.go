package control

import (
	"context"
	"encoding/json"

	"scrimp/internal/core"
	"scrimp/internal/store"
)

// piece is how many jobs are encoded at a time, with no step meanwhile: about 2 ms.
const piece = 200

// snapshot begins one where it is due and none is being written. The caller
// holds the lock; the writing goes on beside the steps that follow.
func (c *Control) snapshot(ctx context.Context) {
	if c.cfg.Snapshot == 0 || c.snapping || c.machine.Seq()-c.snapped < max(c.cfg.Snapshot, uint64(c.machine.Len()/4)) {
		return
	}
	c.snapping = true
	f := c.machine.Freeze()
	c.acts.Go(func() {
		if err := c.save(ctx, f); err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("snapshot not saved; a restart reads more of the log", "error", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.snapping, c.snapped = false, f.Seq() // after one that failed the next is as far away
	})
}

// save encodes what was frozen, piece by piece, and writes it.
func (c *Control) save(ctx context.Context, f *core.Frozen) error {
	var state json.RawMessage
	for done := false; !done; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var err error
		c.Peek(func(*core.Machine) { state, done, err = f.Encode(state, piece) })
		if err != nil {
			return err
		}
	}
	if !c.durable.wait(f.Seq()) {
		return ErrStopping
	}
	return c.store.SaveSnapshot(context.WithoutCancel(ctx), store.Snapshot{Seq: f.Seq(), Version: core.SnapshotVersion, State: state})
}

package control

import (
	"context"
	"encoding/json"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/store"
)

// A snapshot is due after this share of all jobs, and of those that have changed,
// in events: what writing one costs is in proportion to what it saves a restart.
const (
	shareOfAll     = 50
	shareOfChanged = 4
	// probeEvery is how many events pass between two counts of how many jobs have changed.
	probeEvery = 256
	// together is how many bytes of parts are written at once, about: appends wait behind them.
	together = 512 << 10
)

// snapshot begins one where it is due and none is being written. The caller
// holds the lock; the writing goes on beside the steps that follow.
func (c *Control) snapshot(ctx context.Context) {
	seq := c.machine.Seq()
	if c.cfg.Snapshot == 0 || c.snapping || seq < c.probeAt {
		return
	}
	if seq-c.tried < max(c.cfg.Snapshot, uint64(c.machine.Len()/shareOfAll),
		uint64(c.machine.ChangedJobs(c.snapped)/shareOfChanged)) {
		c.probeAt = seq + probeEvery
		return
	}
	c.snapping = true
	base := c.snapped
	f := c.machine.Freeze(base)
	c.acts.Go(func() {
		err := isolate.Do(func() error { return c.save(ctx, f, base) })
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("snapshot not saved; a restart reads more of the log", "error", err, isolate.Stack(err))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.snapping, c.tried = false, f.Seq() // after one that failed the next is as far away
		if err == nil {
			c.snapped = f.Seq()
		}
	})
}

// save encodes what was frozen and has changed since base, part by part, and writes it.
func (c *Control) save(ctx context.Context, f *state.Snapshot, base uint64) error {
	s := store.Snapshot{Seq: f.Seq(), Version: state.SnapshotVersion, Parts: f.Parts(), Base: base}
	parts, size := map[int]json.RawMessage{}, 0
	write := func() error {
		if len(parts) == 0 {
			return nil
		}
		err := c.store.SaveParts(context.WithoutCancel(ctx), s.Seq, parts)
		parts, size = map[int]json.RawMessage{}, 0
		return err
	}
	for more := true; more; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var n int
		var part json.RawMessage
		var err error
		c.ReadUncommitted(func(*core.Machine) { n, part, more, err = f.Encode() })
		if err == nil && more {
			s.New, parts[n] = append(s.New, n), part
			if size += len(part); size >= together {
				err = write()
			}
		}
		if err != nil {
			return err
		}
	}
	if err := write(); err != nil {
		return err
	}
	var err error
	if s.State, err = f.Head(); err != nil {
		return err
	}
	if !c.durable.wait(s.Seq) {
		return ErrStopping
	}
	if err := c.store.SaveSnapshot(context.WithoutCancel(ctx), s); err != nil {
		return err
	}
	if base > 0 {
		c.dropSamples(ctx, base)
	}
	return nil
}

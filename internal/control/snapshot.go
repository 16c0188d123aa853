package control

import (
	"context"
	"encoding/json"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/store"
)

// A snapshot is due after as many events as these fractions of all jobs and of the changed jobs: its cost is
// proportional to what it saves a restart.
const (
	shareOfAll     = 50
	shareOfChanged = 4
	// probeEvery is the number of events between two counts of the changed jobs.
	probeEvery = 256
	// together is the approximate number of bytes of parts in one write; appends wait behind it.
	together = 512 << 10
)

// snapshot starts one if it is due and none is being written. The caller holds the lock; the writing continues while
// steps go on.
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
		c.snapping, c.tried = false, f.Seq() // after a failure the next one is as far away
		if err == nil {
			c.snapped = f.Seq()
		}
	})
}

// save encodes and writes the parts of the frozen state that have changed since base.
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

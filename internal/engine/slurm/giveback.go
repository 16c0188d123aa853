package slurm

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/record"
	"scrimp/internal/engine/slurm/scheduler"
)

// Bills implements engine.Biller. It bills machines whose node Slurm kept for longer than they ran, because others of
// their gang were still running.
func (d *Driver) Bills(_ context.Context, since time.Time) ([]engine.Bill, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var bills []engine.Bill
	for _, key := range slices.Sorted(maps.Keys(d.records)) {
		r := d.records[key]
		if !r.Closed || r.End.Before(since) || !r.Priced {
			continue
		}
		for n := range r.Ends {
			if e := &r.Ends[n]; e.At.Before(r.End) {
				bills = append(bills, engine.Bill{Instance: d.store.ID(r, e.Rank), Key: r.Key, Lines: r.Lines(e)})
			}
		}
	}
	return bills, nil
}

// Terminate implements engine.Driver. It releases the allocation when all of its machines are terminated. One machine
// of several ends alone, and its node is released with the others.
func (d *Driver) Terminate(ctx context.Context, id string) error {
	job, rank, ok := d.store.Parse(id)
	if !ok {
		return engine.ErrNotFound
	}
	if _, err := d.look(ctx, time.Now().Add(-viewAge)); err != nil {
		return err
	}
	d.mu.Lock()
	var r *record.Record
	for _, x := range d.records {
		if x.Job == job {
			c := *x
			r = &c
		}
	}
	unrecorded := false // known only by its comment
	if j := d.view.jobs[job]; r == nil && j != nil && scheduler.Runs[j.State] {
		_, unrecorded = d.store.Ours(j)
	}
	d.mu.Unlock()
	if unrecorded {
		return d.cancel(ctx, job)
	}
	if r == nil || rank >= r.Nodes || r.Start.IsZero() || r.Ended(rank) != nil {
		return engine.ErrNotFound
	}
	if err := d.change(r.Key, func(c *record.Record) {
		if !slices.Contains(c.Given, rank) {
			c.Given = append(slices.Clone(c.Given), rank)
		}
		c.Tried = time.Now()
		r = c
	}); err != nil {
		return err
	}
	return d.giveBack(ctx, r)
}

// giveBackEvery is the interval between attempts to end a terminated machine: its step may not have started at the
// first one.
const giveBackEvery = 3 * time.Second

// giveBack ends the terminated machines of an allocation: all of it, or single steps.
func (d *Driver) giveBack(ctx context.Context, r *record.Record) error {
	var ranks []int
	left := false
	for k := range r.Nodes {
		switch {
		case r.Ended(k) != nil:
		case slices.Contains(r.Given, k):
			ranks = append(ranks, k)
		default:
			left = true
		}
	}
	if !left {
		return d.cancel(ctx, r.Job)
	}
	return d.slurm.EndRanks(ctx, r.Job, d.store.Folder(r.Name), ranks)
}

// cancel ends a job, or finds that it has ended.
func (d *Driver) cancel(ctx context.Context, job string) error {
	err := d.slurm.Cancel(ctx, job)
	if scheduler.IsUnknown(err) {
		return nil // the next list reports how it ended
	}
	return err
}

func isSocket(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "unix"
}

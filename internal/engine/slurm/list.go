package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/record"
	"scrimp/internal/engine/slurm/scheduler"
)

// observe updates the records with what Slurm reports: what has started, and what has ended and why.
func (d *Driver) observe(ctx context.Context, v *view) error {
	missing, waste, owed := d.compare(v)
	if len(missing) > 0 {
		if err := d.gone(ctx, missing); err != nil {
			return err
		}
	}
	for _, r := range owed {
		if err := d.giveBack(ctx, r); err != nil {
			d.log.Warn("a terminated machine has not ended yet", "job", r.Job, "error", err)
		}
	}
	for _, id := range waste { // repeated at the next poll
		if err := d.slurm.CancelPending(ctx, id); err != nil && !scheduler.IsUnknown(err) {
			d.log.Warn("an unwanted job is still in the queue", "job", id, "error", err)
		}
	}
	return nil
}

// compare returns the records whose jobs Slurm no longer knows, unwanted waiting jobs (cancelled ones, and second
// ones of a request), and the records with terminated machines that still run.
func (d *Driver) compare(v *view) (missing []*record.Record, waste []string, owed []*record.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(d.records)) {
		c := *d.records[key]
		r := &c
		for _, j := range v.names[r.Name] {
			if scheduler.Waits[j.State] && (r.Cancelled || r.Job != "" && r.Job != j.ID || !r.Start.IsZero()) {
				waste = append(waste, j.ID)
			}
		}
		if r.Closed {
			continue
		}
		before := *d.records[key]
		r.Adopt(v.names[r.Name], d.store.Claim(r))
		switch j := v.jobs[r.Job]; {
		case j != nil:
			r.Missing = time.Time{}
			d.takes(r, j)
			if r.Owes() && time.Since(r.Tried) > giveBackEvery {
				r.Tried = time.Now()
				owed = append(owed, r)
			}
		case r.Job != "" && r.Submitted.Before(v.begun.Add(-5*time.Second)):
			if r.Missing.IsZero() {
				r.Missing = v.begun
			}
			missing = append(missing, r)
		}
		d.update(&before, r)
	}
	return missing, waste, owed
}

// update replaces a record by a changed one. If that cannot be stored, the old one stays: the next poll sees the same
// change.
func (d *Driver) update(before, r *record.Record) {
	if r.Lasting() != before.Lasting() {
		if err := d.store.Keep(r); err != nil {
			d.log.Error("cannot store the change of a record", "key", r.Key, "error", err)
			return
		}
	}
	d.records[r.Key] = r
}

// takes updates a record from Slurm's report of its job. The caller holds the lock.
func (d *Driver) takes(r *record.Record, j *scheduler.Job) {
	switch {
	case scheduler.Waits[j.State] && r.Start.IsZero():
		r.Reason, r.Expected = j.Reason, j.Start
	case scheduler.Waits[j.State]: // somebody requeued it: what runs next finds its request taken, and ends
		d.ends(r, "PREEMPTED", latest(r.Seen, r.Start))
	case j.State == "COMPLETING" && d.store.Left(r) && !j.End.IsZero(): // its node may take long to notice
		d.ends(r, "COMPLETED", j.End)
	case scheduler.Runs[j.State]:
		if r.Start.IsZero() {
			r.Start = j.Start
		}
		if time.Since(r.Seen) > seenEvery {
			r.Seen = time.Now().UTC().Truncate(time.Second)
		}
		d.ranks(r)
	default:
		if r.Start.IsZero() && j.Nodes != "" {
			r.Start = j.Start
		}
		d.ends(r, j.State, j.End)
	}
}

// ranks notes the ends of single machines in an allocation that continues.
func (d *Driver) ranks(r *record.Record) {
	for k := range r.Nodes {
		if r.Ended(k) != nil || r.Nodes == 1 {
			continue
		}
		if at := d.store.Marked(r, fmt.Sprintf("end.%d", k)); !at.IsZero() {
			r.Told = d.store.Marked(r, "notice") // written earlier
			r.Ends = append(slices.Clone(r.Ends), record.End{Rank: k, At: latest(at, r.Start), Cause: r.Cause(k, "COMPLETED")})
		}
	}
}

// ends notes the end of an allocation and of its machines that had not ended before.
func (d *Driver) ends(r *record.Record, state string, at time.Time) {
	r.State, r.Closed = state, true
	r.Told = d.store.Marked(r, "notice")
	if r.Start.IsZero() {
		r.End = latest(at, r.Submitted)
		d.dropTokens(r)
		return
	}
	d.ranks(r)
	r.End = latest(at, r.Start)
	for _, e := range r.Ends { // by another machine's clock
		r.End = latest(r.End, e.At)
	}
	for k := range r.Nodes {
		if r.Ended(k) == nil {
			r.Ends = append(slices.Clone(r.Ends), record.End{Rank: k, At: r.End, Cause: r.Cause(k, state)})
		}
	}
	d.dropTokens(r)
	if b, err := record.ReadFile(filepath.Join(d.store.Folder(r.Name), "failed")); err == nil {
		_, zone, _ := strings.Cut(string(r.Offer), "/")
		zone, _, _ = strings.Cut(zone, "/")
		d.troubles[zone] = trouble{time.Now(), strings.TrimSpace(string(b))}
	}
}

// gone determines the fate of jobs that the controller no longer knows, from the cluster's accounting or, if it has
// none, from what the allocations have written.
func (d *Driver) gone(ctx context.Context, missing []*record.Record) error {
	ids := make([]string, len(missing))
	for n, r := range missing {
		ids[n] = r.Job
	}
	jobs, err := d.slurm.Accounts(ctx, ids)
	patient := err == nil || !errors.Is(err, scheduler.ErrNoAccounts)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range missing {
		r := d.records[m.Key]
		if r == nil || r.Closed {
			continue
		}
		c, before := *r, *r
		j := jobs[c.Job]
		switch {
		case j != nil && !scheduler.Waits[j.State] && !scheduler.Runs[j.State]:
			d.takes(&c, j)
		case patient && time.Since(c.Missing) < d.patient: // its accounting record may not be written yet
		default:
			d.vanished(&c)
		}
		d.update(&before, &c)
	}
	return nil
}

// vanished ends an allocation that nobody knows any more, at the time when its last machine recorded its end, or when
// it was last seen.
func (d *Driver) vanished(r *record.Record) {
	if r.Start.IsZero() {
		if _, err := os.Stat(filepath.Join(d.store.Folder(r.Name), "claim", "job")); err != nil {
			d.ends(r, "CANCELLED", r.Submitted)
			return
		}
		r.Start = d.store.Written(r, "claim/job")
	}
	last, all := r.Start, true
	for k := range r.Nodes {
		at := d.store.Marked(r, fmt.Sprintf("end.%d", k))
		last, all = latest(last, at), all && !at.IsZero()
	}
	if all {
		d.ends(r, "COMPLETED", last)
		return
	}
	d.ends(r, "NODE_FAIL", latest(last, r.Seen))
}

// List implements engine.Driver with the records, and the jobs that only Slurm knows, by their comments.
func (d *Driver) List(ctx context.Context) ([]engine.Instance, error) {
	v, err := d.look(ctx, time.Now().Add(-viewAge))
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []engine.Instance
	names := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(d.records)) {
		names[d.records[key].Name] = true
		list = append(list, d.store.Instances(d.records[key])...)
	}
	for _, id := range slices.Sorted(maps.Keys(v.jobs)) {
		j := v.jobs[id]
		if names[j.Name] {
			continue
		}
		if r, ours := d.store.Ours(j); ours {
			d.takes(r, j)
			list = append(list, d.store.Instances(r)...)
		}
	}
	return list, nil
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

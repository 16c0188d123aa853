package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/order"
	"scrimp/internal/engine/slurm/record"
	"scrimp/internal/engine/slurm/sale"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/wait"
)

// Launch implements engine.Driver with a batch job per key. The record is written before Slurm is contacted, so that
// a key whose answer was lost is looked up first. Jobs of one name run one at a time, and the first that runs gets
// the request.
func (d *Driver) Launch(ctx context.Context, q engine.Request) ([]engine.Instance, error) {
	if q.Key == "" {
		return nil, fmt.Errorf("%w: a request without a key", engine.ErrRequest)
	}
	if err := q.NoImage(); err != nil {
		return nil, err
	}
	end, err := d.turn(ctx, q.Key)
	if err != nil {
		return nil, err
	}
	defer end()
	r, err := d.known(q.Key)
	if err != nil {
		return nil, err
	}
	if r != nil && !r.Start.IsZero() {
		return d.found(ctx, q.Key)
	}
	if r != nil && r.Cancelled {
		return nil, fmt.Errorf("%w: the request was cancelled", engine.ErrNotFound)
	}
	if r == nil || r.Job == "" {
		if err := d.ask(ctx, &q, r); err != nil {
			return nil, err
		}
	}
	return d.begins(ctx, q.Key)
}

// found returns the current state of a request whose machines were granted.
func (d *Driver) found(ctx context.Context, key string) ([]engine.Instance, error) {
	if _, err := d.look(ctx, time.Now().Add(-viewAge)); err != nil {
		d.log.Debug("the cluster does not answer: the machines are as they were", "key", key, "error", err)
	}
	r, err := d.known(key)
	if err != nil {
		return nil, err
	}
	return d.store.Instances(r), nil
}

// ask submits a request that Slurm does not have yet.
func (d *Driver) ask(ctx context.Context, q *engine.Request, r *record.Record) error {
	again := r != nil
	s, err := d.saleOf(ctx, q)
	if err != nil {
		if again && engine.Refused(err) {
			return d.refuse(q.Key, err)
		}
		return err
	}
	if !again {
		r = &record.Record{Order: order.Of(q, &s.Offer, &s.Quote), Name: record.NameOf(q.Key)}
	}
	if err := d.prepare(r, s, q.Env); err != nil {
		return err
	}
	if again { // an answer was lost: the job is in the queue, or has written to its folder
		if _, err := d.look(ctx, time.Now()); err != nil {
			return err
		}
		if now, err := d.known(q.Key); err != nil || now.Job != "" {
			return err
		}
	}
	d.mu.Lock()
	r.Submitted = time.Now().UTC()
	if err := d.store.Keep(r); err != nil {
		d.mu.Unlock()
		return err
	}
	d.records[q.Key] = r
	d.mu.Unlock()
	o := s.Order(r.Name, r.Comment(), r.Nodes)
	o.Folder = d.store.Folder(r.Name)
	job, err := d.slurm.Submit(ctx, o)
	if err != nil && engine.Refused(err) {
		return d.refuse(q.Key, err)
	}
	if err != nil {
		return err
	}
	return d.change(q.Key, func(r *record.Record) { r.Job = cmp.Or(r.Job, job) })
}

// saleOf returns what a request asks for, if it is available.
func (d *Driver) saleOf(ctx context.Context, q *engine.Request) (*sale.Sale, error) {
	sales, _, err := d.sold(ctx, clusterAge)
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(sales, func(s sale.Sale) bool { return s.Offer.ID == q.Offer })
	if n < 0 {
		return nil, fmt.Errorf("%w: the cluster has no %s: sinfo -s lists its "+
			"partitions", engine.ErrNotFound, q.Offer)
	}
	s := &sales[n]
	switch {
	case q.MaxRate > 0 && !s.Quote.Priced:
		return nil, fmt.Errorf("%w: the price of %s is unknown: set its rate in "+
			"engines.yaml", engine.ErrPrice, s.Of.Name)
	case q.MaxRate > 0 && s.Quote.Rate > q.MaxRate:
		return nil, fmt.Errorf("%w: %v an hour, and %v at most", engine.ErrPrice, s.Quote.Rate, q.MaxRate)
	case s.Why != "":
		return nil, &engine.RefusalError{Err: fmt.Errorf("%w: %s", engine.ErrNoCapacity, s.Why), Scope: "zone"}
	case !s.Here && isSocket(q.Env["SCRIMP_SERVER"]):
		return nil, &engine.RefusalError{Err: fmt.Errorf("%w: %s", engine.ErrRequest, notHere), Scope: "account"}
	}
	d.mu.Lock()
	t, bad := d.troubles[s.Of.Name]
	d.mu.Unlock()
	if left := troubleFor - time.Since(t.at); bad && left > 0 {
		return nil, &engine.RefusalError{Err: fmt.Errorf("%w: "+
			"%s", engine.ErrNoCapacity, t.text), Scope: "zone", Wait: left}
	}
	return s, nil
}

const (
	notHere = "its nodes do not see the server's socket: write agents: listen for the engine in " +
		"engines.yaml, and start the " +
		"server with scrimp serve --listen HOST:PORT"
	// troubleFor is how long no machine is rented on a node after one could not start its work.
	troubleFor = 2 * time.Minute
)

// refuse forgets a request that Slurm does not accept, so that its key counts as unused.
func (d *Driver) refuse(key string, why error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := os.RemoveAll(d.store.Folder(record.NameOf(key))); err != nil {
		return err
	}
	delete(d.records, key)
	return why
}

// begins waits a moment for the job of a key to start, and returns its state.
func (d *Driver) begins(ctx context.Context, key string) ([]engine.Instance, error) {
	newer := time.Now().Add(-viewAge)
	for until, pause := time.Now().Add(d.start), 100*time.Millisecond; ; pause *= 2 {
		v, err := d.look(ctx, newer)
		if err != nil {
			return nil, err
		}
		r, err := d.known(key)
		switch {
		case err != nil:
			return nil, err
		case r == nil:
			return nil, fmt.Errorf("the record of %s is gone", key)
		case !r.Start.IsZero():
			return d.store.Instances(r), nil
		case !r.End.IsZero():
			return nil, d.refuse(key, &engine.RefusalError{Err: fmt.Errorf("%w: job %s ended (%s) before it "+
				"began: sacct -j %s, or "+
				"who gave it up", engine.ErrNoCapacity, r.Job, r.State, r.Job), Scope: "zone"})
		}
		if why, quota := refusedFor(r.Reason); why != "" {
			return nil, d.withdraw(ctx, r, why, quota)
		}
		fresh := r.Submitted.After(v.begun.Add(-d.start)) // just submitted
		if !fresh || time.Now().After(until) {
			return nil, r.Pending()
		}
		if err := wait.For(ctx, pause); err != nil {
			return nil, err
		}
		newer = time.Now()
	}
}

// withdraw cancels a job that will never start.
func (d *Driver) withdraw(ctx context.Context, r *record.Record, why string, quota bool) error {
	gone, err := d.cancelWaiting(ctx, r)
	if err != nil || !gone {
		return cmp.Or(err, error(r.Pending())) // it has started after all
	}
	no := engine.ErrNoCapacity
	if quota {
		no = engine.ErrQuota
	}
	return d.refuse(r.Key, &engine.RefusalError{Err: fmt.Errorf("%w: %s", no, why), Scope: "zone"})
}

// cancelWaiting cancels a job that has not started, and reports whether it never will.
func (d *Driver) cancelWaiting(ctx context.Context, r *record.Record) (gone bool, err error) {
	if r.Job != "" {
		if err := d.slurm.CancelPending(ctx, r.Job); err != nil && !scheduler.IsUnknown(err) {
			return false, err
		}
	}
	for range 20 {
		if _, err := d.look(ctx, time.Now()); err != nil {
			return false, err
		}
		now, err := d.known(r.Key)
		switch {
		case err != nil:
			return false, err
		case !now.Start.IsZero():
			return false, nil
		case !now.End.IsZero() || now.Job == "":
			return true, nil
		}
		if err := wait.For(ctx, 200*time.Millisecond); err != nil {
			return false, err
		}
	}
	return false, errors.New("job " + r.Job + " was cancelled, but Slurm still has it")
}

// Cancel implements engine.Canceller.
func (d *Driver) Cancel(ctx context.Context, key string) error {
	end, err := d.turn(ctx, key)
	if err != nil {
		return err
	}
	defer end()
	if _, err := d.look(ctx, time.Now()); err != nil {
		return err
	}
	r, err := d.known(key)
	switch {
	case err != nil:
		return err
	case r == nil, !r.Start.IsZero(), !r.End.IsZero():
		return fmt.Errorf("%w: nothing waits", engine.ErrNotFound)
	}
	// The mark comes first: no Launch of the key submits it again, and a job of it that appears later does nothing.
	mark := filepath.Join(d.store.Folder(r.Name), "cancelled")
	err = errors.Join(durable.Replace(mark, nil), d.change(key, func(r *record.Record) { r.Cancelled = true }))
	if err != nil {
		return err
	}
	gone, err := d.cancelWaiting(ctx, r)
	if err != nil {
		return err
	}
	if !gone {
		err := errors.Join(os.Remove(mark), d.change(key, func(r *record.Record) { r.Cancelled = false }))
		return errors.Join(fmt.Errorf("%w: it has started", engine.ErrNotFound), err)
	}
	d.dropTokens(r)
	return d.change(key, func(r *record.Record) {
		if r.Closed = true; r.End.IsZero() {
			r.End = time.Now().UTC()
		}
	})
}

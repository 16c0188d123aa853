//go:build !local

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/manifest"
	"scrimp/internal/engine/kube/mirror"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/engine/kube/reason"
	"scrimp/internal/engine/kube/record"
	"scrimp/internal/engine/order"
	"scrimp/internal/lib/wait"
)

// Launch implements engine.Driver with a Job per key. The Job's record exists before the Job and owns it. The names
// of both follow from the key, so that neither is created twice.
func (d *Driver) Launch(ctx context.Context, q engine.Request) ([]engine.Instance, error) {
	if q.Key == "" {
		return nil, fmt.Errorf("%w: a request without a key", engine.ErrRequest)
	}
	end, err := d.turns.Take(ctx, q.Key)
	if err != nil {
		return nil, err
	}
	defer end()
	a, err := d.look(ctx)
	if err != nil {
		return nil, err
	}
	list, err := d.launch(ctx, a, &q)
	return list, d.explain(err)
}

// template returns what the manifests of all requests have in common.
func (d *Driver) template() *manifest.Template {
	return &manifest.Template{Engine: d.name, Server: d.server, With: &d.with}
}

func (d *Driver) launch(ctx context.Context, a *client.Client, q *engine.Request) ([]engine.Instance, error) {
	r, err := d.records.Known(ctx, a, q.Key)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Ungranted() && r.Cancelled:
		return nil, fmt.Errorf("%w: the request was cancelled", engine.ErrNotFound)
	case r != nil && r.Whole():
		return d.launched(ctx, a, q.Key)
	}
	if r == nil { // it is rented at the current price
		d.prices.Refresh(ctx, a)
	}
	s, err := d.saleOf(q, r)
	if err != nil {
		if r.Ungranted() {
			return nil, d.refuse(ctx, a, r, err)
		}
		return nil, err
	}
	fresh := r == nil
	if fresh {
		if r, fresh, err = d.begin(ctx, a, q, s); err != nil {
			return nil, err
		}
	}
	if !d.records.Made(r.Key) {
		err = d.make(ctx, a, r, s, q.Env, fresh)
	}
	switch {
	case engine.Refused(err):
		return nil, d.refuse(ctx, a, r, err)
	case err != nil:
		return nil, err
	}
	return d.begins(ctx, a, r, s)
}

// launched returns the machines granted to a request that starts no more.
func (d *Driver) launched(ctx context.Context, a *client.Client, key string) ([]engine.Instance, error) {
	if err := d.settle(ctx, a, key); err != nil {
		return nil, err
	}
	r, err := d.records.Known(ctx, a, key)
	if err != nil || r == nil {
		return nil, orRetry(err, "its record is gone")
	}
	if len(r.Granted) < r.Nodes {
		err = fmt.Errorf("%w: the rest was cancelled", engine.ErrNotFound)
	}
	return r.Instances(d.name), err
}

// begin stores the record of a request before it creates anything; fresh is false if another server has stored one.
func (d *Driver) begin(ctx context.Context, a *client.Client, q *engine.Request, s *pool.Sale) (r *record.Record,
	fresh bool, err error) {
	r = &record.Record{Order: order.Of(q, &s.Offer, &s.Quote), Notice: time.Duration(s.Of.Grace), Image: q.Image,
		Asked: time.Now().UTC().Truncate(time.Second)}
	fresh = true
	err = d.records.Keep(ctx, a, r)
	switch {
	case apierrors.IsAlreadyExists(err): // another server's, or it is being deleted
		if r, err = d.records.Fetch(ctx, a, q.Key); err != nil || r == nil {
			return nil, false, orRetry(err, "an earlier request of this name is being removed")
		}
		fresh = false
	case err != nil:
		return nil, false, reason.Refusal(a, err)
	}
	d.records.Remember(r)
	return r, fresh, nil
}

// orRetry returns err, or an error that tells the caller to retry.
func orRetry(err error, why string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: scrimp tries again", why)
}

// saleOf returns what a request asks for, if it is available. A request with a record keeps its price.
func (d *Driver) saleOf(q *engine.Request, r *record.Record) (*pool.Sale, error) {
	sales := d.prices.Sales()
	for n := range sales {
		s := &sales[n]
		if s.Offer.ID != q.Offer {
			continue
		}
		if r != nil && r.Priced {
			s.Quote.Rate, s.Quote.Priced = r.Rate, true
		}
		switch {
		case q.MaxRate > 0 && !s.Quote.Priced:
			return nil, fmt.Errorf("%w: the price of %s is unknown: %s", engine.ErrPrice, s.Of.Name,
				cmp.Or(s.Unknown, "set its rate in engines.yaml"))
		case q.MaxRate > 0 && s.Quote.Rate > q.MaxRate:
			return nil, fmt.Errorf("%w: %v an hour, and %v at most", engine.ErrPrice, s.Quote.Rate, q.MaxRate)
		}
		if left, why := d.troubled(s.Of.Name); left > 0 {
			return nil, &engine.RefusalError{Err: fmt.Errorf("%w: %s", engine.ErrNoCapacity, why), Scope: "zone", Wait: left}
		}
		if s.Of.Machines > 0 && q.Machines() > s.Offer.Machines {
			return nil, fmt.Errorf("%w: %d machines at once, and pool %s has %d", engine.ErrNoCapacity, q.Machines(), s.Of.Name,
				s.Offer.Machines)
		}
		return s, nil
	}
	return nil, fmt.Errorf("%w: the engine has no %s: its pools are in engines.yaml", engine.ErrNotFound, q.Offer)
}

// refuse forgets a refused request, so that its key counts as unused. It deletes the record first, unless another
// server has noted meanwhile that something has started; Kubernetes then deletes what the record owned.
func (d *Driver) refuse(ctx context.Context, a *client.Client, r *record.Record, why error) error {
	if !engine.Refused(why) {
		return why
	}
	err := a.Drop(ctx, "configmaps", r.Name, &metav1.Preconditions{UID: &r.UID, ResourceVersion: &r.Version})
	if apierrors.IsConflict(err) {
		if _, err := d.records.Fetch(ctx, a, r.Key); err != nil {
			return err
		}
		return fmt.Errorf("another server works on %s: scrimp tries again", r.Key)
	}
	if err != nil {
		return err
	}
	d.records.Forget(r.Key)
	if err := d.undo(ctx, a, r); err != nil {
		d.log.Warn("cannot delete the Job of a refused request; it goes with its record", "job", r.Name, "error", err)
	}
	return why
}

// undo deletes the Job of a record, and no other Job of that name.
func (d *Driver) undo(ctx context.Context, a *client.Client, r *record.Record) error {
	var j batchv1.Job
	err := a.Get(ctx, "jobs", r.Name, &j)
	if apierrors.IsNotFound(err) || err == nil && !r.Owns(&j.ObjectMeta) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.Drop(ctx, "jobs", r.Name, &metav1.Preconditions{UID: &j.UID})
}

// begins waits a moment for the pods of a request, and returns its state.
func (d *Driver) begins(ctx context.Context, a *client.Client, r *record.Record, s *pool.Sale) ([]engine.Instance,
	error) {
	for until, pause := time.Now().Add(d.start), 50*time.Millisecond; ; pause = min(2*pause, 300*time.Millisecond) {
		if err := d.settle(ctx, a, r.Key); err != nil {
			return nil, err
		}
		now, err := d.records.Known(ctx, a, r.Key)
		switch {
		case err != nil:
			return nil, err
		case now == nil:
			return nil, fmt.Errorf("the record of %s is gone", r.Key)
		case now.Whole():
			return now.Instances(d.name), nil
		}
		last := time.Since(now.Asked) >= 2*d.start || time.Now().After(until)
		why, err := d.hinders(ctx, a, now, s, last)
		switch {
		case err != nil && engine.Refused(err):
			if more, err2 := d.begun(ctx, a, now); err2 != nil || more {
				return nil, orRetry(err2, "it has started")
			}
			if len(now.Granted) == 0 {
				return nil, d.refuse(ctx, a, now, err)
			}
			return d.part(ctx, a, now, err)
		case err != nil:
			return nil, err
		}
		if last {
			return now.Instances(d.name), &engine.PendingError{Why: why}
		}
		if err := wait.For(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// begun reports whether the API server shows a started pod of a request that the request's record lacks.
func (d *Driver) begun(ctx context.Context, a *client.Client, r *record.Record) (bool, error) {
	_, err := d.listed(ctx, a, r)
	c := r.Copied()
	d.seen(c)
	return len(c.Granted) > len(r.Granted), err
}

// part cancels the waiting part of a request, and returns the started machines together with the reason.
func (d *Driver) part(ctx context.Context, a *client.Client, r *record.Record, why error) ([]engine.Instance, error) {
	err := d.cancel(ctx, a, r.Key)
	if errors.Is(err, engine.ErrNotFound) {
		return nil, orRetry(nil, "it has started")
	}
	if err == nil {
		r, err = d.records.Known(ctx, a, r.Key)
	}
	if err != nil || r == nil {
		return nil, orRetry(err, "its record is gone")
	}
	return r.Instances(d.name), why
}

// Cancel implements engine.Canceller: it deletes pods that have not started.
func (d *Driver) Cancel(ctx context.Context, key string) error {
	end, err := d.turns.Take(ctx, key)
	if err != nil {
		return err
	}
	defer end()
	a, err := d.look(ctx)
	if err != nil {
		return err
	}
	return d.explain(d.cancel(ctx, a, key))
}

func (d *Driver) cancel(ctx context.Context, a *client.Client, key string) error {
	r, err := d.records.Known(ctx, a, key)
	if err == nil && r != nil {
		if err = d.settle(ctx, a, key); err == nil {
			r, err = d.records.Known(ctx, a, key)
		}
	}
	switch {
	case err != nil:
		return err
	case r == nil, r.Whole():
		return fmt.Errorf("%w: nothing waits", engine.ErrNotFound)
	}
	// Deletes name the version last seen: a pod that has started meanwhile has another version and stays.
	for tries := 0; ; tries++ {
		again, err := d.dropWaiting(ctx, a, r)
		if err != nil {
			return err
		}
		if !again || tries > 20 {
			break
		}
	}
	r, err = d.records.Change(ctx, a, key, func(r *record.Record) {
		d.seen(r)
		if len(r.Granted) < r.Nodes {
			r.Cancelled = true
		}
		d.seen(r)
	})
	if err != nil {
		return err
	}
	if r == nil || len(r.Granted) == r.Nodes {
		return fmt.Errorf("%w: it has started, or was refused", engine.ErrNotFound)
	}
	return d.settle(ctx, a, key)
}

// dropWaiting deletes the pods of a request that have not started; again means that one has changed meanwhile.
func (d *Driver) dropWaiting(ctx context.Context, a *client.Client, r *record.Record) (again bool, err error) {
	var pods corev1.PodList
	if err := a.List(ctx, "pods", &metav1.ListOptions{LabelSelector: client.LabelRecord + "=" + string(r.UID)},
		&pods); err != nil {
		return false, err
	}
	for n := range pods.Items {
		p := mirror.PodOf(&pods.Items[n])
		if p.Begun() || !p.Deleting.IsZero() || r.Grant(p.Index) != nil {
			d.mirror.Put(p)
			continue
		}
		err := a.Drop(ctx, "pods", p.Name, &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.Version})
		if again = again || apierrors.IsConflict(err); err != nil && !apierrors.IsConflict(err) {
			return false, err
		}
	}
	return again, nil
}

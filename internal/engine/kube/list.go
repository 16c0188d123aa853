//go:build !local

package kube

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/mirror"
	"scrimp/internal/engine/kube/reason"
	"scrimp/internal/engine/kube/record"
	"scrimp/internal/lib/isolate"
)

const (
	// lateEnd is how long a pod's end may take beyond its grace.
	lateEnd = 15 * time.Second
	// lateLaunch bounds the duration of a launch that another server has started.
	lateLaunch = time.Minute
	// loadEvery is the interval between reads of all records, which other servers may have created.
	loadEvery = time.Minute
	// listFor is how long a list processes changes. The next list continues where it stopped.
	listFor = 3 * time.Second
	// atOnce bounds the objects written at once.
	atOnce = 8
)

// List implements engine.Driver.
func (d *Driver) List(ctx context.Context) ([]engine.Instance, error) {
	a, err := d.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.observe(ctx, a); err != nil {
		return nil, d.explain(err)
	}
	var list []engine.Instance
	for _, r := range d.records.All() {
		list = append(list, r.Instances(d.name)...)
	}
	return list, nil
}

// observe updates the records with what the API server has reported: what has started, and what has ended and why.
func (d *Driver) observe(ctx context.Context, a *client.Client) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		fails error
		slots = make(chan struct{}, atOnce)
		began = time.Now()
	)
	for _, r := range d.records.All() {
		act := d.settle
		if r.Over() && !r.Closed.IsZero() && time.Since(r.Closed) > lateEnd && d.mirror.None(string(r.UID)) {
			if !d.looksLate(r) {
				continue
			}
			act = d.late
		} else {
			if err := d.trace(ctx, a, r); err != nil {
				return err
			}
			if c := r.Copied(); !d.seen(c) {
				continue
			}
		}
		slots <- struct{}{}
		if time.Since(began) > listFor {
			d.mirror.Changed()
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := isolate.Do(func() error { return act(ctx, a, r.Key) }); err != nil {
				mu.Lock()
				fails = errors.Join(fails, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return fails
}

// trace finds out when pods disappeared while no server watched: from their events, which are kept for an hour, or
// otherwise assumes now. This server may not yet know of machines that another one has granted.
func (d *Driver) trace(ctx context.Context, a *client.Client, r *record.Record) error {
	missed := d.missed(r)
	if len(missed) == 0 {
		return nil
	}
	if _, err := d.listed(ctx, a, r); err != nil {
		return err
	}
	for _, id := range d.missed(r) {
		told, err := reason.EventsOf(ctx, a, string(id))
		if err != nil {
			return err
		}
		at, why := d.mirror.Since(), "gone"
		if at.IsZero() {
			at = time.Now()
		}
		if len(told) > 0 {
			at, why = told[len(told)-1].At, told[len(told)-1].Text
		}
		d.mirror.WentAt(id, at, why)
	}
	return nil
}

// missed returns the pods of machines that have not ended but are not known.
func (d *Driver) missed(r *record.Record) (list []types.UID) {
	for n := range r.Granted {
		g := &r.Granted[n]
		if !g.End.IsZero() || d.mirror.Knows(g.Pod) {
			continue
		}
		if _, known := d.mirror.Lost(g.Pod); !known {
			list = append(list, g.Pod)
		}
	}
	return list
}

// listed reads the current pods of a request, and returns their number.
func (d *Driver) listed(ctx context.Context, a *client.Client, r *record.Record) (int, error) {
	var list corev1.PodList
	err := a.List(ctx, "pods", &metav1.ListOptions{LabelSelector: client.LabelRecord + "=" + string(r.UID)}, &list)
	for n := range list.Items {
		d.mirror.Put(mirror.PodOf(&list.Items[n]))
	}
	return len(list.Items), err
}

// settle updates one request and deletes what it no longer needs. It closes the request once everything is deleted.
func (d *Driver) settle(ctx context.Context, a *client.Client, key string) error {
	r, err := d.records.Change(ctx, a, key, func(r *record.Record) { d.seen(r) })
	if err != nil || r == nil {
		return err
	}
	waste := d.waste(r)
	// A launch without an answer may still create a Job later. The Job is deleted before its pods: while a pod
	// exists, the deletion is repeated.
	closes := r.Over() && (r.Closed.IsZero() || len(waste) > 0)
	if closes {
		if err := d.clear(ctx, a, r); err != nil {
			return err
		}
	}
	for _, p := range waste {
		if err := a.Drop(ctx, "pods", p.Name, &metav1.Preconditions{UID: &p.UID}); err != nil {
			return err
		}
	}
	if !closes {
		return nil
	}
	if r.Cancelled { // pods may have been created and started until the Job was removed
		if _, err := d.listed(ctx, a, r); err != nil {
			return err
		}
	}
	_, err = d.records.Change(ctx, a, key, func(r *record.Record) {
		d.seen(r)
		if r.Over() && r.Closed.IsZero() {
			r.Closed = time.Now().UTC().Truncate(time.Second)
		}
	})
	d.records.Unmade(key)
	return err
}

// looksLate reports whether an ended request is to be cleared once more, because no launch of it can be under way any
// more.
func (d *Driver) looksLate(r *record.Record) bool {
	ago := time.Since(r.Closed)
	return !d.records.ClearedLate(r.Key) && ago >= lateLaunch && ago <= 10*lateLaunch
}

// late deletes what a launch may have created after everything had been deleted, before its server died.
func (d *Driver) late(ctx context.Context, a *client.Client, key string) error {
	r, err := d.records.Known(ctx, a, key)
	if err != nil || r == nil {
		return err
	}
	if err := d.clear(ctx, a, r); err != nil {
		return err
	}
	d.records.SetClearedLate(key)
	return nil
}

// clear deletes the objects of an ended request; its record stays for a while.
func (d *Driver) clear(ctx context.Context, a *client.Client, r *record.Record) error {
	err := errors.Join(a.Drop(ctx, "jobs", r.Name, nil), a.Drop(ctx, "secrets", r.Name, nil))
	if r.Nodes > 1 {
		err = errors.Join(err, a.Drop(ctx, "services", r.Name, nil))
	}
	return err
}

// waste returns pods to delete: those that are none of the request's machines, because they came after one had
// started and ended, or after the cancellation, and terminated machines.
func (d *Driver) waste(r *record.Record) (list []*mirror.Pod) {
	for _, p := range d.mirror.PodsOf(string(r.UID)) {
		g := r.Grant(p.Index)
		if !p.Deleting.IsZero() || !p.Ended.IsZero() {
			continue
		}
		if g == nil && r.Cancelled || g != nil && (g.Pod != p.UID || g.Given) {
			list = append(list, p)
		}
	}
	return list
}

// seen updates a copy of a request's record from its pods, and reports whether there is anything to do.
func (d *Driver) seen(r *record.Record) bool {
	before := slices.Clone(r.Granted)
	pods := d.mirror.PodsOf(string(r.UID))
	for _, p := range slices.Concat(d.mirror.BegunOf(string(r.UID)), pods) {
		if r.Grant(p.Index) == nil && p.Index < r.Nodes && p.Begun() {
			r.Begins(p)
		}
	}
	for n := range r.Granted {
		if g := &r.Granted[n]; g.End.IsZero() {
			d.ends(g, pods)
		}
	}
	return r.Over() && r.Closed.IsZero() || !slices.Equal(r.Granted, before) || len(d.waste(r)) > 0
}

// ends notes the end of a machine whose pod has ended, is gone, or should have ended a while ago.
func (d *Driver) ends(g *record.Granted, pods []*mirror.Pod) {
	n := slices.IndexFunc(pods, func(p *mirror.Pod) bool { return p.UID == g.Pod })
	if n < 0 {
		if left, ok := d.mirror.Lost(g.Pod); ok {
			g.EndsAt(left.Pod, left.At)
		}
		return
	}
	switch p := pods[n]; {
	case !p.Ended.IsZero():
		g.EndsAt(p, p.Ended)
	case !p.Deleting.IsZero() && time.Since(p.Deleting) > lateEnd: // its node does not answer
		g.EndsAt(p, p.Deleting)
	}
}

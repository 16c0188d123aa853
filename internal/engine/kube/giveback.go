//go:build !local

package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/record"
)

// Terminate implements engine.Driver: it deletes the machine's pod with its grace period.
func (d *Driver) Terminate(ctx context.Context, id string) error {
	name, index, ok := record.Parse(d.name, id)
	if !ok {
		return engine.ErrNotFound
	}
	a, err := d.look(ctx)
	if err != nil {
		return err
	}
	key := d.records.KeyOf(name)
	if key == "" { // perhaps another server's
		if err := d.records.Load(ctx, a); err != nil {
			return d.explain(err)
		}
		if key = d.records.KeyOf(name); key == "" {
			return engine.ErrNotFound
		}
	}
	end, err := d.turns.Take(ctx, key)
	if err != nil {
		return err
	}
	defer end()
	if err := d.settle(ctx, a, key); err != nil {
		return d.explain(err)
	}
	running := false
	r, err := d.records.Change(ctx, a, key, func(r *record.Record) {
		if g := r.Grant(index); g != nil && g.End.IsZero() {
			running, g.Given = true, true
		}
	})
	if err != nil {
		return d.explain(err)
	}
	if r == nil || !running {
		return engine.ErrNotFound
	}
	uid := r.Grant(index).Pod
	for _, p := range d.mirror.PodsOf(string(r.UID)) {
		if p.UID == uid {
			return d.explain(a.Drop(ctx, "pods", p.Name, &metav1.Preconditions{UID: &uid}))
		}
	}
	return nil // the next list reports how it ended
}

//go:build !local

package kube

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/engine/kube/reason"
	"scrimp/internal/engine/kube/record"
)

// create creates an object. It replaces one that a launch without an answer or an earlier request left, except a Job.
func create(ctx context.Context, a *client.Client, resource, name string, object runtime.Object) error {
	err := a.Create(ctx, resource, object, false)
	if apierrors.IsAlreadyExists(err) && resource != "jobs" {
		if err = a.Drop(ctx, resource, name, nil); err == nil {
			err = a.Create(ctx, resource, object, false)
		}
	}
	return err
}

// hasJob reports whether the Job of a record exists. A Job of an earlier request with the same name is an error.
func hasJob(ctx context.Context, a *client.Client, r *record.Record) (bool, error) {
	var there batchv1.Job
	err := a.Get(ctx, "jobs", r.Name, &there)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, reason.Refusal(a, err)
	case !r.Owns(&there.ObjectMeta):
		return false, fmt.Errorf("the Job %s of an earlier request is being deleted: scrimp tries again", r.Name)
	}
	return true, nil
}

// make creates the objects of a record that has none yet, the Job last, because it starts. A newly created record has
// no Job, or one of an earlier request with the same name.
func (d *Driver) make(ctx context.Context, a *client.Client, r *record.Record, s *pool.Sale, env map[string]string,
	fresh bool) error {
	if !fresh {
		if made, err := hasJob(ctx, a, r); err != nil {
			return err
		} else if made {
			d.records.SetMade(r.Key)
			return nil
		}
	}
	secret, err := d.template().Secret(r, env["SCRIMP_TOKEN"])
	if err != nil {
		return fmt.Errorf("read the agents' CA certificates: %w", err)
	}
	parts := []struct {
		resource string
		object   runtime.Object
	}{{"secrets", secret}, {"jobs", d.template().Job(r, s, env)}}
	if r.Nodes > 1 {
		parts = append(parts[:1:1], struct {
			resource string
			object   runtime.Object
		}{"services", d.template().Service(r)}, parts[1])
	}
	for _, p := range parts {
		if err := create(ctx, a, p.resource, r.Name, p.object); err != nil {
			return reason.Refusal(a, err)
		}
	}
	// Another server may have cancelled or refused the request before there was a Job to remove.
	now, err := d.records.Fetch(ctx, a, r.Key)
	if err != nil {
		return err
	}
	if now == nil || now.UID != r.UID || now.Cancelled {
		return orRetry(d.undo(ctx, a, r), "another server cancelled it")
	}
	if now.Over() { // the request started and ended meanwhile: this Job would be a second one
		return orRetry(d.clear(ctx, a, now), "it has ended")
	}
	d.records.SetMade(r.Key)
	return nil
}

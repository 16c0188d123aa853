//go:build !local

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/mirror"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/engine/kube/reason"
	"scrimp/internal/engine/kube/record"
)

// explain adds the meaning of an API server error for this engine, and the fix.
func (d *Driver) explain(err error) error {
	switch {
	case err == nil, engine.Refused(err), errors.Is(err, engine.ErrPending):
		return err
	case reason.UnknownUser(err):
		return fmt.Errorf("the cluster rejects the credentials (%s): renew them (a kubeconfig's token, "+
			"or the login of "+
			"its exec command); scrimp reads them again by itself: %w", reason.Said(err), errCredentials)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the cluster denies this to the user: %s: scrimp doctor %s prints the Role that is needed",
			reason.Said(err), d.name)
	}
	return err
}

var errCredentials = errors.New("the cluster rejects the credentials")

// hinders returns what keeps the pods of a request from starting and, with asks, why there are none. A refusal means
// that they never will.
func (d *Driver) hinders(ctx context.Context, a *client.Client, r *record.Record, s *pool.Sale, asks bool) (why string,
	err error) {
	pods := d.mirror.PodsOf(string(r.UID))
	if asks && len(pods) < r.Nodes-len(r.Granted) {
		if why, err = d.withoutPods(ctx, a, r, s); err != nil || why != "" {
			return why, err
		}
	}
	why = "its pods are being created"
	slices.SortStableFunc(pods, func(a, b *mirror.Pod) int { // the last message is that of a pod that waits for a node
		return b.Scheduled.Compare(a.Scheduled)
	})
	for _, p := range pods {
		if r.Grant(p.Index) != nil {
			continue
		}
		fix, bad := reason.StartFixes[p.Reason]
		ended := !p.Ended.IsZero() || p.Phase == corev1.PodFailed
		switch {
		case ended && (p.Disrupted != "" || record.Taken[p.Reason]):
			return "", &engine.RefusalError{Err: fmt.Errorf("%w: pod %s was evicted before it started: %s", engine.ErrNoCapacity,
				p.Name, cmp.Or(p.Disrupted, failure(p), p.Reason)), Scope: "offer"}
		case bad || ended:
			return "", d.cannotStart(r, s, p, fix)
		}
		why = pending(p, s)
	}
	return why, nil
}

// failure is the message of what keeps a pod from starting, or "".
func failure(p *mirror.Pod) string { return strings.TrimSpace(cmp.Or(p.Failure, p.Waits)) }

// cannotStart refuses the request of a pod that will never start. fix says what helps, or is empty.
func (d *Driver) cannotStart(r *record.Record, s *pool.Sale, p *mirror.Pod, fix string) error {
	text := strings.TrimPrefix(failure(p), "Error: ")
	if fix != "" {
		text += ": " + fix
	}
	if p.Reason != "" && p.Reason != "Init" {
		text = p.Reason + ": " + text
	}
	kind := engine.ErrNoCapacity
	if r.Image != "" && p.Reason != "Init" { // the pool is not at fault
		kind, text = engine.ErrImage, r.Image+": "+text
	} else {
		d.trouble(s.Of.Name, text)
	}
	return &engine.RefusalError{Err: fmt.Errorf("%w: pod %s does not start on %s: %s", kind, p.Name,
		cmp.Or(p.Node, "any node"), text), Scope: "offer"}
}

// pending says what a pod waits for that may still start.
func pending(p *mirror.Pod, s *pool.Sale) string {
	switch {
	case p.Scheduled.IsZero():
		why := fmt.Sprintf("pod %s waits for a node: %s", p.Name, cmp.Or(p.Waits, "the scheduler has not considered it yet"))
		if reason.TooLarge(p.Waits) {
			why += fmt.Sprintf(" No present node can hold it, even when empty: lower cpus, memory and the rest of pool "+
				"%s in engines.yaml, unless an autoscaler adds a larger one", s.Of.Name)
		}
		return why
	case p.Waits != "":
		return fmt.Sprintf("pod %s starts on %s: %s: %s", p.Name, p.Node, p.Reason, p.Waits)
	}
	return fmt.Sprintf("pod %s starts on %s: its images are being pulled", p.Name, p.Node)
}

// withoutPods returns why a Job has no pods, or not all.
func (d *Driver) withoutPods(ctx context.Context, a *client.Client, r *record.Record, s *pool.Sale) (string, error) {
	if time.Since(r.Asked) < time.Second {
		return "", nil
	}
	var j batchv1.Job
	if err := a.Get(ctx, "jobs", r.Name, &j); err != nil {
		if apierrors.IsNotFound(err) { // somebody has removed it, or its answer was lost
			d.records.Forget(r.Key) // its record may be gone, too, or explain it
			return "its Job is gone; scrimp creates it again", nil
		}
		return "", err
	}
	if j.Spec.Suspend != nil && *j.Spec.Suspend {
		return reason.Queued(ctx, a, &j, s)
	}
	if j.Status.Failed > 0 {
		if there, err := d.listed(ctx, a, r); err != nil || there > 0 {
			return "", err
		}
		return "", &engine.RefusalError{Err: fmt.Errorf("%w: its pods were evicted before they started, and are gone: "+
			"kubectl describe job %s", engine.ErrNoCapacity, j.Name), Scope: "offer"}
	}
	return reason.NotCreated(ctx, a, string(j.UID), s)
}

//go:build !local

// Package reason says why the API server refuses an object and why a pod does not start, with the fix.
package reason

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/pool"
)

// UnknownUser reports whether the API server does not recognise the caller.
func UnknownUser(err error) bool { return apierrors.IsUnauthorized(err) }

// Said returns the API server's message without client-go's additions.
func Said(err error) string {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status.ErrStatus.Message
	}
	return err.Error()
}

// Refusal converts a definite refusal of an object by the API server, with its scope.
func Refusal(a *client.Client, err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	no := func(kind error, scope, fix string) error {
		return &engine.RefusalError{Err: fmt.Errorf("%w: %s%s", kind, status.ErrStatus.Message, fix), Scope: scope}
	}
	switch {
	case apierrors.IsTooManyRequests(err):
		wait, _ := apierrors.SuggestsClientDelay(err)
		return &engine.RefusalError{Err: fmt.Errorf("%w: %s", engine.ErrThrottled, Said(err)), Scope: "account",
			Wait: time.Duration(wait) * time.Second}
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return no(engine.ErrRequest, "account", fmt.Sprintf(": kubectl create namespace %s, or set namespace in engines.yaml",
			a.Namespace))
	case overQuota(status.ErrStatus.Message):
		return no(engine.ErrQuota, "account", ": kubectl describe quota -n "+a.Namespace+" shows what is used")
	case apierrors.IsForbidden(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind != "":
		return no(engine.ErrRequest, "account", ": scrimp doctor prints the Role that is needed, or an admission policy of "+
			"the cluster refuses it")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err),
		status.ErrStatus.Code == http.StatusForbidden:
		return no(engine.ErrRequest, "offer", "")
	}
	return err
}

// overQuota reports whether a ResourceQuota caused a refusal. Kubernetes has no reason code for that.
func overQuota(message string) bool { return strings.Contains(message, "exceeded quota") }

// notice is an event of the cluster.
type notice struct {
	At     time.Time
	Reason string
	Text   string
}

// EventsOf returns the events of an object by its id, or by its name if given, the oldest first.
func EventsOf(ctx context.Context, a *client.Client, uid string) ([]notice, error) {
	var list corev1.EventList
	err := a.List(ctx, "events", &metav1.ListOptions{FieldSelector: "involvedObject.uid=" + uid, Limit: 100}, &list)
	if err != nil {
		return nil, err
	}
	told := make([]notice, 0, len(list.Items))
	for n := range list.Items {
		e := &list.Items[n]
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		told = append(told, notice{at, e.Reason, e.Message})
	}
	slices.SortFunc(told, func(a, b notice) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Text, b.Text)) })
	return told, nil
}

// StartFixes maps kubelet's reason codes for containers that do not start to the fix. Codes that may pass after one
// occurrence are not included: their pods wait.
var StartFixes = map[string]string{
	"InvalidImageName": "correct image", "ErrImageNeverPull": "let its nodes pull images",
	"ImagePullBackOff": "check the name of the image and its tag, and pull_secrets if its " +
		"registry needs a login",
	"CreateContainerConfigError": "check volumes, pull_secrets and user of the engine",
	"CreateContainerError":       "see kubectl describe pod",
	"RunContainerError":          "see kubectl describe pod",
	"StartError":                 "the image must have the nodes' architecture",
	"ContainerCannotRun":         "the image must have the nodes' architecture",
	"Init":                       "",
}

// TooLarge reports whether the scheduler says that a pod requests more than any of its nodes has. For full nodes it
// says that it has searched for pods to preempt.
func TooLarge(said string) bool {
	return strings.Contains(said, "Insufficient ") && strings.Contains(said, "Preemption is not helpful") &&
		!strings.Contains(said, "No preemption victims")
}

// passes reports whether the obstacle to creating a pod is temporary: an unreachable admission webhook, or a
// namespace without a service account yet.
func passes(text string) bool {
	has := func(word string) bool { return strings.Contains(text, word) }
	no := has("forbidden") || has("invalid") || has("denied")
	return !no || has("error looking up service account") || has("failed calling webhook")
}

// Queued returns what a Job that Kueue has not admitted waits for.
func Queued(ctx context.Context, a *client.Client, j *batchv1.Job, s *pool.Sale) (string, error) {
	if s.Of.Queue == "" {
		return "its Job is suspended: kubectl get job " + j.Name + " -o yaml says by whom", nil
	}
	err := LocalQueue(ctx, a, s.Of.Queue)
	switch {
	case apierrors.IsNotFound(err):
		return "", &engine.RefusalError{Err: fmt.Errorf("%w: %s", engine.ErrRequest, NoQueue(a.Namespace,
			s.Of.Queue)), Scope: "zone"}
	case err != nil && !apierrors.IsForbidden(err):
		return "", err
	}
	told, err := EventsOf(ctx, a, string(j.UID))
	if err != nil {
		return "", err
	}
	why := "Kueue has not admitted it (queue " + s.Of.Queue + ")"
	if len(told) > 0 {
		why += ": " + told[len(told)-1].Text
	}
	return why, nil
}

// LocalQueue reads a Kueue queue in whichever version of its objects the cluster has.
func LocalQueue(ctx context.Context, a *client.Client, name string) (err error) {
	for _, version := range []string{"v1beta2", "v1beta1"} {
		err = a.Plain.Get().AbsPath("/apis/kueue.x-k8s.io", version, "namespaces", a.Namespace, "localqueues",
			name).Do(ctx).Error()
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	return err
}

// NoQueue says that there is no such queue, with the fix.
func NoQueue(namespace, queue string) string {
	return fmt.Sprintf("there is no queue %s in namespace %s, or no Kueue in the cluster: kubectl get localqueues -n %s; "+
		"correct queue in engines.yaml, or leave it out", queue, namespace, namespace)
}

// NotAsked reports whether this user may not create pods, which only the Job controller does on its behalf.
func NotAsked(err error) bool {
	return apierrors.IsForbidden(err) && !overQuota(Said(err)) && strings.Contains(Said(err), "cannot create resource")
}

// NotCreated returns why the Job controller creates no pods of a Job, by its newest event that says so, or "".
func NotCreated(ctx context.Context, a *client.Client, uid string, s *pool.Sale) (string, error) {
	told, err := EventsOf(ctx, a, uid)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(told) {
		if e.Reason != "FailedCreate" {
			continue
		}
		kind, fix := engine.ErrRequest, ": the namespace does not allow what it requests"
		if overQuota(e.Text) {
			kind, fix = engine.ErrQuota, ": kubectl describe quota -n "+a.Namespace+" shows what is used"
		} else if passes(e.Text) {
			return e.Text, nil
		}
		scope := "offer"
		if errors.Is(kind, engine.ErrQuota) && s.Of.PriorityClass == "" { // the namespace's quota, for any pool
			scope = "account"
		}
		return "", &engine.RefusalError{Err: fmt.Errorf("%w: %s%s", kind, e.Text, fix), Scope: scope}
	}
	return "", nil
}

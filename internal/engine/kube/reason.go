//go:build !local

package kube

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
	"scrimp/internal/engine/kube/mirror"
	"scrimp/internal/engine/kube/pool"
)

// unknownUser reports whether the API server does not recognise the caller.
func unknownUser(err error) bool { return apierrors.IsUnauthorized(err) }

// said returns the API server's message without client-go's additions.
func said(err error) string {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status.ErrStatus.Message
	}
	return err.Error()
}

// explain adds the meaning of an API server error for this engine, and the fix.
func (d *Driver) explain(err error) error {
	switch {
	case err == nil, engine.Refused(err), errors.Is(err, engine.ErrPending):
		return err
	case unknownUser(err):
		return fmt.Errorf("the cluster does not take the credentials (%s): renew them (a kubeconfig's token, "+
			"or the login of "+
			"its exec command); they are read anew by themselves: %w", said(err), errCredentials)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the cluster does not let this user do so: %s: scrimp doctor %s prints the Role that is needed",
			said(err), d.name)
	}
	return err
}

var errCredentials = errors.New("credentials are not taken")

// refusal converts a definite refusal of an object by the API server, with its scope.
func refusal(a *client.Client, err error) error {
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
		return &engine.RefusalError{Err: fmt.Errorf("%w: %s", engine.ErrThrottled, said(err)), Scope: "account",
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
	at     time.Time
	reason string
	text   string
}

// eventsOf returns the events of an object by its id, or by its name if given, the oldest first.
func eventsOf(ctx context.Context, a *client.Client, uid string) ([]notice, error) {
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
	slices.SortFunc(told, func(a, b notice) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.text, b.text)) })
	return told, nil
}

// Kubelet's reason codes for containers that do not start, with the fix. Codes that may pass after one occurrence are
// not included: their pods wait.
var stuck = map[string]string{
	"InvalidImageName": "correct image", "ErrImageNeverPull": "let its nodes pull images",
	"ImagePullBackOff": "check the name of the image and its tag, and pull_secrets where its " +
		"registry wants a login",
	"CreateContainerConfigError": "check volumes, pull_secrets and user of the engine",
	"CreateContainerError":       "see kubectl describe pod",
	"RunContainerError":          "see kubectl describe pod",
	"StartError":                 "the image must be of the nodes' architecture",
	"ContainerCannotRun":         "the image must be of the nodes' architecture",
	"Init":                       "",
}

// hinders returns what keeps the pods of a request from starting and, with asks, why there are none. A refusal means
// that they never will.
func (d *Driver) hinders(ctx context.Context, a *client.Client, r *record, s *pool.Sale, asks bool) (why string,
	err error) {
	pods := d.mirror.PodsOf(string(r.uid))
	if asks && len(pods) < r.Nodes-len(r.Granted) {
		if why, err = d.withoutPods(ctx, a, r, s); err != nil || why != "" {
			return why, err
		}
	}
	why = "its pods are being made"
	slices.SortStableFunc(pods, func(a, b *mirror.Pod) int { // the last message is that of a pod that waits for a node
		return b.Scheduled.Compare(a.Scheduled)
	})
	for _, p := range pods {
		if r.grant(p.Index) != nil {
			continue
		}
		fix, bad := stuck[p.Reason]
		ended := !p.Ended.IsZero() || p.Phase == corev1.PodFailed
		text := strings.TrimSpace(cmp.Or(p.Failure, p.Waits))
		switch {
		case ended && (p.Disrupted != "" || taken[p.Reason]):
			return "", &engine.RefusalError{Err: fmt.Errorf("%w: pod %s was taken before it began: %s",
				engine.ErrNoCapacity, p.Name,
				cmp.Or(p.Disrupted, text, p.Reason)), Scope: "offer"}
		case bad || ended:
			text = strings.TrimPrefix(text, "Error: ")
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
			return "", &engine.RefusalError{Err: fmt.Errorf("%w: pod %s does not start on %s: %s", kind, p.Name,
				cmp.Or(p.Node, "any node"), text), Scope: "offer"}
		case p.Scheduled.IsZero():
			why = fmt.Sprintf("pod %s waits for a node: %s", p.Name, cmp.Or(p.Waits, "the scheduler has not looked at it yet"))
			if tooLarge(p.Waits) {
				why += fmt.Sprintf(" No node that is there can hold it, even when empty: lower cpus, memory and the rest of pool "+
					"%s in engines.yaml, unless an autoscaler makes a larger one", s.Of.Name)
			}
		case p.Waits != "":
			why = fmt.Sprintf("pod %s begins on %s: %s: %s", p.Name, p.Node, p.Reason, p.Waits)
		default:
			why = fmt.Sprintf("pod %s begins on %s: its images are being pulled", p.Name, p.Node)
		}
	}
	return why, nil
}

// tooLarge reports whether the scheduler says that a pod requests more than any of its nodes has. For full nodes it
// says that it has searched for pods to preempt.
func tooLarge(said string) bool {
	return strings.Contains(said, "Insufficient ") && strings.Contains(said, "Preemption is not helpful") &&
		!strings.Contains(said, "No preemption victims")
}

// withoutPods returns why a Job has no pods, or not all.
func (d *Driver) withoutPods(ctx context.Context, a *client.Client, r *record, s *pool.Sale) (string, error) {
	if time.Since(r.Asked) < time.Second {
		return "", nil
	}
	var j batchv1.Job
	if err := a.Get(ctx, "jobs", r.name, &j); err != nil {
		if apierrors.IsNotFound(err) { // somebody has removed it, or its answer was lost
			d.forget(r.Key) // its record may be gone, too, or explain it
			return "its Job is gone, and is made again", nil
		}
		return "", err
	}
	if j.Spec.Suspend != nil && *j.Spec.Suspend {
		return d.queued(ctx, a, &j, s)
	}
	if j.Status.Failed > 0 {
		if there, err := d.listed(ctx, a, r); err != nil || there > 0 {
			return "", err
		}
		return "", &engine.RefusalError{Err: fmt.Errorf("%w: its pods were taken before they began, and are gone: "+
			"kubectl describe job %s", engine.ErrNoCapacity, j.Name), Scope: "offer"}
	}
	told, err := eventsOf(ctx, a, string(j.UID))
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(told) {
		if e.reason != "FailedCreate" {
			continue
		}
		kind, fix := engine.ErrRequest, ": it asks for what the namespace does not allow"
		if overQuota(e.text) {
			kind, fix = engine.ErrQuota, ": kubectl describe quota -n "+a.Namespace+" shows what is used"
		} else if passes(e.text) {
			return e.text, nil
		}
		scope := "offer"
		if errors.Is(kind, engine.ErrQuota) && s.Of.PriorityClass == "" { // the namespace's quota, for any pool
			scope = "account"
		}
		return "", &engine.RefusalError{Err: fmt.Errorf("%w: %s%s", kind, e.text, fix), Scope: scope}
	}
	return "", nil
}

// passes reports whether the obstacle to creating a pod is temporary: an unreachable admission webhook, or a
// namespace without a service account yet.
func passes(text string) bool {
	has := func(word string) bool { return strings.Contains(text, word) }
	no := has("forbidden") || has("invalid") || has("denied")
	return !no || has("error looking up service account") || has("failed calling webhook")
}

// queued returns what a Job that Kueue has not admitted waits for.
func (d *Driver) queued(ctx context.Context, a *client.Client, j *batchv1.Job, s *pool.Sale) (string, error) {
	if s.Of.Queue == "" {
		return "its Job is suspended: kubectl get job " + j.Name + " -o yaml says by whom", nil
	}
	err := localQueue(ctx, a, s.Of.Queue)
	switch {
	case apierrors.IsNotFound(err):
		return "", &engine.RefusalError{Err: fmt.Errorf("%w: %s", engine.ErrRequest, noQueue(a.Namespace,
			s.Of.Queue)), Scope: "zone"}
	case err != nil && !apierrors.IsForbidden(err):
		return "", err
	}
	told, err := eventsOf(ctx, a, string(j.UID))
	if err != nil {
		return "", err
	}
	why := "Kueue has not admitted it (queue " + s.Of.Queue + ")"
	if len(told) > 0 {
		why += ": " + told[len(told)-1].text
	}
	return why, nil
}

// localQueue reads a Kueue queue in whichever version of its objects the cluster has.
func localQueue(ctx context.Context, a *client.Client, name string) (err error) {
	for _, version := range []string{"v1beta2", "v1beta1"} {
		err = a.Plain.Get().AbsPath("/apis/kueue.x-k8s.io", version, "namespaces", a.Namespace, "localqueues",
			name).Do(ctx).Error()
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	return err
}

func noQueue(namespace, queue string) string {
	return fmt.Sprintf("there is no queue %s in namespace %s, or no Kueue in the cluster: kubectl get localqueues -n %s; "+
		"correct queue in engines.yaml, or leave it out", queue, namespace, namespace)
}

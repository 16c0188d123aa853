//go:build !local

// Package mirror mirrors an engine's pods from the API server of their cluster.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"scrimp/internal/engine/kube/client"
	"scrimp/internal/lib/wait"
)

// Pod holds the relevant fields of a pod.
type Pod struct {
	Name    string
	UID     types.UID
	record  string // the record that it belongs to
	Index   int    // within its Job
	Version string

	Node      string
	Scheduled time.Time // zero: not scheduled
	Waits     string    // why it is not scheduled or does not start, in Kubernetes' words
	Reason    string    // Kubernetes' reason code: Unschedulable, ErrImagePull, …
	Running   bool      // the agent has started
	Phase     corev1.PodPhase
	Deleting  time.Time // its latest end; zero: nobody has deleted it
	Disrupted string    // who evicts it, in Kubernetes' words; empty: nobody
	Ended     time.Time // end of its agent; zero: none
	Failure   string    // why it did not start, or ended
}

// gonePod is a deleted pod as last seen.
type gonePod struct {
	*Pod
	At time.Time // when that was noticed; zero: nobody watched then
}

// Mirror holds an engine's pods as the API server reports them.
type Mirror struct {
	Changed func()

	mu     sync.Mutex
	pods   map[types.UID]*Pod
	of     map[string]map[types.UID]*Pod // by record
	gone   map[types.UID]gonePod
	begun  map[string][]*Pod // deleted pods that had started, by record
	swept  time.Time         // when old entries were last dropped
	filled time.Time         // last complete list; zero: a list is due
	stop   context.CancelFunc
}

// goneFor is how long a deleted pod is remembered.
const goneFor = 10 * time.Minute

// New creates an empty mirror, which calls changed at each change.
func New(changed func()) *Mirror {
	return &Mirror{Changed: changed, pods: map[types.UID]*Pod{}, of: map[string]map[types.UID]*Pod{},
		gone: map[types.UID]gonePod{}, begun: map[string][]*Pod{}}
}

// againAfter is the pause after a failed watch; it doubles up to againMost while watches fail.
const againAfter, againMost = time.Second, 8 * time.Second

// Follow mirrors the API server until ctx ends: it resumes the watch, and lists again if its position is too old.
func (m *Mirror) Follow(ctx context.Context, a *client.Client, selector string) {
	pods, pause := Follower(a, selector, m), againAfter
	for ctx.Err() == nil {
		began := time.Now()
		within, stop := context.WithCancel(ctx)
		m.mu.Lock()
		m.stop = stop
		m.mu.Unlock()
		_ = pods.ListAndWatchWithContext(within)                  // others check whether the API server answers
		if within.Err() != nil || time.Since(began) > againMost { // a new list was requested, or the watch had worked
			pause = againAfter
		}
		_ = wait.For(within, pause/2+rand.N(pause/2)) // servers of one cluster must not retry together
		pause = min(2*pause, againMost)
		stop()
	}
}

// Anew lists all pods again, at once.
func (m *Mirror) Anew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.filled = time.Time{}
	if m.stop != nil {
		m.stop()
	}
}

// Follower fills a store with the pods that match a selector.
func Follower(a *client.Client, selector string, to cache.ReflectorStore) *cache.Reflector {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			var list corev1.PodList
			err := a.List(ctx, "pods", &o, &list)
			return &list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.Watch = selector, true
			return a.In(a.Core.Get(), "pods").VersionedParams(&o, client.Queries).Watch(ctx)
		},
	}
	return cache.NewReflectorWithOptions(source, &corev1.Pod{}, to, cache.ReflectorOptions{Name: "pods"})
}

// Add implements cache.ReflectorStore.
func (m *Mirror) Add(o any) error {
	if p, ok := o.(*corev1.Pod); ok {
		m.Put(PodOf(p))
		m.Changed()
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (m *Mirror) Update(o any) error { return m.Add(o) }

// Delete implements cache.ReflectorStore.
func (m *Mirror) Delete(o any) error {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	m.mu.Lock()
	m.drop(PodOf(p), time.Now())
	m.mu.Unlock()
	m.Changed()
	return nil
}

// Replace implements cache.ReflectorStore.
func (m *Mirror) Replace(list []any, _ string) error {
	m.mu.Lock()
	defer m.Changed()
	defer m.mu.Unlock()
	old := maps.Clone(m.pods)
	for _, o := range list {
		if p, ok := o.(*corev1.Pod); ok {
			seen := PodOf(p)
			delete(old, seen.UID)
			m.set(seen)
		}
	}
	for _, p := range old {
		m.drop(p, time.Time{})
	}
	m.filled = time.Now()
	return nil
}

// Resync implements cache.ReflectorStore.
func (m *Mirror) Resync() error { return nil }

// Put stores a pod as the API server has it.
func (m *Mirror) Put(p *Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(p)
}

// set stores a pod unless a newer version is known.
func (m *Mirror) set(p *Pod) {
	if now := m.pods[p.UID]; now != nil && Newer(now.Version, p.Version) {
		return
	}
	if _, gone := m.gone[p.UID]; gone { // deleted pods do not come back
		return
	}
	m.pods[p.UID] = p
	if m.of[p.record] == nil {
		m.of[p.record] = map[types.UID]*Pod{}
	}
	m.of[p.record][p.UID] = p
}

func (m *Mirror) drop(p *Pod, at time.Time) {
	delete(m.pods, p.UID)
	delete(m.of[p.record], p.UID)
	if len(m.of[p.record]) == 0 {
		delete(m.of, p.record)
	}
	m.gone[p.UID] = gonePod{p, at}
	if p.Begun() {
		m.begun[p.record] = append(m.begun[p.record], p)
	}
	now := time.Now()
	if now.Sub(m.swept) < goneFor/10 {
		return
	}
	m.swept = now
	for id, g := range m.gone {
		if !g.At.IsZero() && now.Sub(g.At) > goneFor {
			delete(m.gone, id)
			delete(m.begun, g.record)
		}
	}
}

// Since returns the time of the last complete list; zero if a list is due.
func (m *Mirror) Since() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.filled
}

// WentAt notes when and why a pod disappeared while no server watched.
func (m *Mirror) WentAt(id types.UID, at time.Time, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := Pod{UID: id}
	if g, known := m.gone[id]; known {
		p = *g.Pod
	}
	p.Failure = cmp.Or(p.Failure, why)
	m.gone[id] = gonePod{&p, at}
}

// BegunOf returns a record's deleted pods that had started.
func (m *Mirror) BegunOf(record string) []*Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun[record]
}

// PodsOf returns a record's current pods, sorted by index.
func (m *Mirror) PodsOf(record string) []*Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*Pod, 0, len(m.of[record]))
	for _, p := range m.of[record] {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Pod) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

// None reports whether a record has no pods.
func (m *Mirror) None(record string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.of[record]) == 0
}

// Knows reports whether a pod exists.
func (m *Mirror) Knows(id types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pods[id] != nil
}

// Lost returns a deleted pod as last seen, if it is known when it disappeared.
func (m *Mirror) Lost(id types.UID) (gonePod, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, ok := m.gone[id]
	return g, ok && (!g.At.IsZero() || !g.Ended.IsZero())
}

// PodOf extracts the relevant fields.
func PodOf(p *corev1.Pod) *Pod {
	q := &Pod{Name: p.Name, UID: p.UID, record: p.Labels[client.LabelRecord], Version: p.ResourceVersion,
		Node:  p.Spec.NodeName,
		Phase: p.Status.Phase, Failure: p.Status.Message}
	q.Index, _ = strconv.Atoi(p.Annotations["batch.kubernetes.io/job-completion-index"]) // every pod has an index
	if p.DeletionTimestamp != nil {
		q.Deleting = p.DeletionTimestamp.Time
	}
	for n := range p.Status.Conditions {
		q.condition(&p.Status.Conditions[n])
	}
	for n := range p.Status.InitContainerStatuses {
		q.container(&p.Status.InitContainerStatuses[n], true)
	}
	for n := range p.Status.ContainerStatuses {
		q.container(&p.Status.ContainerStatuses[n], false)
	}
	if q.Ended.IsZero() && (q.Phase == corev1.PodFailed || q.Phase == corev1.PodSucceeded) {
		q.Ended = lastChange(p)
	}
	if q.Reason == "" && p.Status.Reason != "" {
		q.Reason = p.Status.Reason
	}
	return q
}

func (p *Pod) condition(c *corev1.PodCondition) {
	switch {
	case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue:
		p.Scheduled = c.LastTransitionTime.Time
	case c.Type == corev1.PodScheduled:
		p.Reason, p.Waits = c.Reason, c.Message
	case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
		p.Disrupted = c.Reason + ": " + c.Message
	}
}

func (p *Pod) container(c *corev1.ContainerStatus, first bool) {
	switch {
	case c.State.Waiting != nil && c.State.Waiting.Reason != "PodInitializing" &&
		c.State.Waiting.Reason != "ContainerCreating":
		p.Reason, p.Waits = c.State.Waiting.Reason, c.State.Waiting.Message
	case c.State.Running != nil && !first:
		p.Running = true
	case c.State.Terminated != nil && first && c.State.Terminated.ExitCode != 0:
		p.Reason, p.Failure = "Init", c.State.Terminated.Reason+": "+c.State.Terminated.Message
	case c.State.Terminated != nil && !first:
		p.terminated(c.State.Terminated)
	}
}

// terminated reads how the agent's container ended.
func (p *Pod) terminated(t *corev1.ContainerStateTerminated) {
	p.Running = p.Running || !t.StartedAt.IsZero() && t.Reason != "StartError"
	p.Ended = t.FinishedAt.Time
	if t.Reason == "StartError" || t.Reason == "ContainerCannotRun" {
		p.Reason = t.Reason
	}
	if t.ExitCode != 0 {
		p.Failure = t.Reason + ": " + t.Message
	}
}

// lastChange returns the newest change of a pod's conditions, for a pod that reports no other end.
func lastChange(p *corev1.Pod) time.Time {
	last := p.CreationTimestamp.Time
	for _, c := range p.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}

// Newer compares versions of one object, which increase wherever Kubernetes keeps them in etcd.
func Newer(a, b string) bool {
	x, err := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	return errors.Join(err, err2) == nil && x > y
}

// Begun reports whether a pod's agent has started.
func (p *Pod) Begun() bool { return p.Running && !p.Scheduled.IsZero() }

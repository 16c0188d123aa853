//go:build !local

package kube

import (
	"cmp"
	"context"
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

	"scrimp/internal/lib/wait"
)

// pod is what matters of one.
type pod struct {
	name   string
	uid    types.UID
	record string // that it belongs to
	index  int    // of its Job
	rv     string

	node      string
	scheduled time.Time // zero: it is not
	waits     string    // why it is not, or why it does not begin, in Kubernetes' words
	reason    string    // the machine's word for that: Unschedulable, ErrImagePull, …
	running   bool      // the agent was begun
	phase     corev1.PodPhase
	deleting  time.Time // when it ends at the latest; zero: nobody has asked for that
	disrupted string    // who takes it, in Kubernetes' words; "": nobody has said so
	ended     time.Time // of its agent; zero: it has not
	failure   string    // why it did not begin, or ended
}

// gonePod is one that is not there any more, as it was last seen.
type gonePod struct {
	*pod
	at time.Time // when that was noticed; zero: nobody watched then
}

// mirror holds the pods of an engine as the API server tells of them.
type mirror struct {
	changed func()

	mu     sync.Mutex
	pods   map[types.UID]*pod
	of     map[string]map[types.UID]*pod // by record
	gone   map[types.UID]gonePod
	begun  map[string][]*pod // those of them that had begun, by record
	swept  time.Time         // when those were dropped last that went long ago
	filled time.Time         // when all of them were listed last; zero: they are to be listed
	stop   context.CancelFunc
}

// goneFor is how long what was last seen of a pod is kept.
const goneFor = 10 * time.Minute

func newMirror(changed func()) *mirror {
	return &mirror{changed: changed, pods: map[types.UID]*pod{}, of: map[string]map[types.UID]*pod{},
		gone: map[types.UID]gonePod{}, begun: map[string][]*pod{}}
}

// againAfter is between a watch that failed and the next one; it doubles up to againMost as long as they fail.
const againAfter, againMost = time.Second, 8 * time.Second

// follow keeps the mirror as the API server has it, until ctx ends: it watches from where it was, and lists anew where
// that is too old.
func (m *mirror) follow(ctx context.Context, a *api, selector string) {
	pods, pause := follower(a, selector, m), againAfter
	for ctx.Err() == nil {
		began := time.Now()
		within, stop := context.WithCancel(ctx)
		m.mu.Lock()
		m.stop = stop
		m.mu.Unlock()
		_ = pods.ListAndWatchWithContext(within)                  // whether the API server answers is asked by itself
		if within.Err() != nil || time.Since(began) > againMost { // it is asked to begin anew, or had begun well
			pause = againAfter
		}
		_ = wait.For(within, pause/2+rand.N(pause/2)) // servers of one cluster do not come together
		pause = min(2*pause, againMost)
		stop()
	}
}

// anew lists all pods again, at once.
func (m *mirror) anew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.filled = time.Time{}
	if m.stop != nil {
		m.stop()
	}
}

// follower fills a store with the pods that a selector chooses.
func follower(a *api, selector string, to cache.ReflectorStore) *cache.Reflector {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			var list corev1.PodList
			err := a.list(ctx, "pods", &o, &list)
			return &list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.Watch = selector, true
			return a.in(a.core.Get(), "pods").VersionedParams(&o, queries).Watch(ctx)
		},
	}
	return cache.NewReflectorWithOptions(source, &corev1.Pod{}, to, cache.ReflectorOptions{Name: "pods"})
}

// Add implements cache.ReflectorStore.
func (m *mirror) Add(o any) error {
	if p, ok := o.(*corev1.Pod); ok {
		m.put(podOf(p))
		m.changed()
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (m *mirror) Update(o any) error { return m.Add(o) }

// Delete implements cache.ReflectorStore.
func (m *mirror) Delete(o any) error {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	m.mu.Lock()
	m.drop(podOf(p), time.Now())
	m.mu.Unlock()
	m.changed()
	return nil
}

// Replace implements cache.ReflectorStore.
func (m *mirror) Replace(list []any, _ string) error {
	m.mu.Lock()
	defer m.changed()
	defer m.mu.Unlock()
	old := maps.Clone(m.pods)
	for _, o := range list {
		if p, ok := o.(*corev1.Pod); ok {
			seen := podOf(p)
			delete(old, seen.uid)
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
func (m *mirror) Resync() error { return nil }

func (m *mirror) put(p *pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(p)
}

// set takes what is told of a pod, unless more was told before.
func (m *mirror) set(p *pod) {
	if now := m.pods[p.uid]; now != nil && newer(now.rv, p.rv) {
		return
	}
	if _, gone := m.gone[p.uid]; gone { // they do not come back
		return
	}
	m.pods[p.uid] = p
	if m.of[p.record] == nil {
		m.of[p.record] = map[types.UID]*pod{}
	}
	m.of[p.record][p.uid] = p
}

func (m *mirror) drop(p *pod, at time.Time) {
	delete(m.pods, p.uid)
	delete(m.of[p.record], p.uid)
	if len(m.of[p.record]) == 0 {
		delete(m.of, p.record)
	}
	m.gone[p.uid] = gonePod{p, at}
	if p.begun() {
		m.begun[p.record] = append(m.begun[p.record], p)
	}
	now := time.Now()
	if now.Sub(m.swept) < goneFor/10 {
		return
	}
	m.swept = now
	for id, g := range m.gone {
		if !g.at.IsZero() && now.Sub(g.at) > goneFor {
			delete(m.gone, id)
			delete(m.begun, g.record)
		}
	}
}

// since is when all pods were listed last; zero: they are to be listed.
func (m *mirror) since() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.filled
}

// wentAt notes when a pod went that nobody saw go, and why.
func (m *mirror) wentAt(id types.UID, at time.Time, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := pod{uid: id}
	if g, known := m.gone[id]; known {
		p = *g.pod
	}
	p.failure = cmp.Or(p.failure, why)
	m.gone[id] = gonePod{&p, at}
}

// begunOf are the pods of a record that had begun and are gone.
func (m *mirror) begunOf(record string) []*pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun[record]
}

// podsOf are a record's pods as they are now, in the order of their indexes.
func (m *mirror) podsOf(record string) []*pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*pod, 0, len(m.of[record]))
	for _, p := range m.of[record] {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *pod) int { return cmp.Compare(a.index, b.index) })
	return list
}

// none reports whether no pod of a record is there.
func (m *mirror) none(record string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.of[record]) == 0
}

// knows reports whether a pod is there.
func (m *mirror) knows(id types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pods[id] != nil
}

// lost is a pod that is gone, as it was last seen, where it is known when it went.
func (m *mirror) lost(id types.UID) (gonePod, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, ok := m.gone[id]
	return g, ok && (!g.at.IsZero() || !g.ended.IsZero())
}

// podOf takes what matters.
func podOf(p *corev1.Pod) *pod {
	q := &pod{name: p.Name, uid: p.UID, record: p.Labels[labelRecord], rv: p.ResourceVersion, node: p.Spec.NodeName,
		phase: p.Status.Phase, failure: p.Status.Message}
	q.index, _ = strconv.Atoi(p.Annotations["batch.kubernetes.io/job-completion-index"]) // each pod of these Jobs has one
	if p.DeletionTimestamp != nil {
		q.deleting = p.DeletionTimestamp.Time
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
	if q.ended.IsZero() && (q.phase == corev1.PodFailed || q.phase == corev1.PodSucceeded) {
		q.ended = lastChange(p)
	}
	if q.reason == "" && p.Status.Reason != "" {
		q.reason = p.Status.Reason
	}
	return q
}

func (p *pod) condition(c *corev1.PodCondition) {
	switch {
	case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue:
		p.scheduled = c.LastTransitionTime.Time
	case c.Type == corev1.PodScheduled:
		p.reason, p.waits = c.Reason, c.Message
	case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
		p.disrupted = c.Reason + ": " + c.Message
	}
}

func (p *pod) container(c *corev1.ContainerStatus, first bool) {
	switch {
	case c.State.Waiting != nil && c.State.Waiting.Reason != "PodInitializing" &&
		c.State.Waiting.Reason != "ContainerCreating":
		p.reason, p.waits = c.State.Waiting.Reason, c.State.Waiting.Message
	case c.State.Running != nil && !first:
		p.running = true
	case c.State.Terminated != nil && first && c.State.Terminated.ExitCode != 0:
		p.reason, p.failure = "Init", c.State.Terminated.Reason+": "+c.State.Terminated.Message
	case c.State.Terminated != nil && !first:
		t := c.State.Terminated
		p.running = p.running || !t.StartedAt.IsZero() && t.Reason != "StartError"
		p.ended = t.FinishedAt.Time
		if t.Reason == "StartError" || t.Reason == "ContainerCannotRun" {
			p.reason = t.Reason
		}
		if t.ExitCode != 0 {
			p.failure = t.Reason + ": " + t.Message
		}
	}
}

// lastChange is when the newest of a pod's conditions changed, for one that says no other end.
func lastChange(p *corev1.Pod) time.Time {
	last := p.CreationTimestamp.Time
	for _, c := range p.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}

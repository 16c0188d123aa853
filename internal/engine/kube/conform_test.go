//go:build !local

package kube

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// again is a driver that can be replaced, as when its server is killed and started again.
type again struct {
	mu sync.Mutex
	*Driver
}

func (a *again) now() *Driver {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Driver
}

func (a *again) Launch(ctx context.Context, q engine.Request) ([]engine.Instance, error) {
	if q.Env == nil {
		q.Env = map[string]string{"SCRIMP_SERVER": a.now().server, "SCRIMP_TOKEN": "bootstrap.secret", "SCRIMP_TASK_USER": "same"}
	}
	for began := time.Now(); ; { // a request that fits is granted, but later than on an idle machine
		list, err := a.now().Launch(ctx, q)
		if !errors.Is(err, engine.ErrPending) || string(q.Offer) != std || time.Since(began) > eventually.Limit {
			return list, err
		}
	}
}
func (a *again) Cancel(ctx context.Context, key string) error        { return a.now().Cancel(ctx, key) }
func (a *again) Terminate(ctx context.Context, id string) error      { return a.now().Terminate(ctx, id) }
func (a *again) List(ctx context.Context) ([]engine.Instance, error) { return a.now().List(ctx) }
func (a *again) Watch(ctx context.Context, changed func()) error     { return a.now().Watch(ctx, changed) }

// site is a namespace of a cluster with its own pools of nodes.
type site struct {
	*kubetest.Cluster
	testing.TB
	namespace string
	config    string
	admin     *client.Client // an administrator's client
}

var sites atomic.Int32

// newSite creates a site whose user has the least Role.
func newSite(t testing.TB, c *kubetest.Cluster) *site {
	s := &site{Cluster: c, TB: t, namespace: fmt.Sprintf("team-%d", sites.Add(1))}
	w := s.with()
	s.config = c.User(t, s.namespace, Role(&w, s.namespace))
	var err error
	if s.admin, err = client.Connect(&pool.With{Kubeconfig: c.Kubeconfig(), Namespace: s.namespace}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// evict evicts a pod through the API.
func evict(ctx context.Context, a *client.Client, pod string) error {
	return a.In(a.Core.Post(), "pods").Name(pod).SubResource("eviction").SetHeader("Content-Type", "application/json").
		Body(fmt.Appendf(nil, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, pod,
			a.Namespace)).Do(ctx).Error()
}

// read lists objects of the site as an administrator, and retries while the API server is down.
func (s *site) read(kind string, opts *metav1.ListOptions, to runtime.Object) {
	s.Helper()
	eventually.True(s, "a list of "+kind, func() bool { return s.admin.List(s.Context(), kind, opts, to) == nil })
}

// left returns the engine's objects in the site, without its records.
func (s *site) left() (names []string) {
	s.Helper()
	var (
		pods     corev1.PodList
		jobs     batchv1.JobList
		secrets  corev1.SecretList
		services corev1.ServiceList
	)
	for kind, to := range map[string]runtime.Object{"pods": &pods, "jobs": &jobs, "secrets": &secrets, "services": &services} {
		s.read(kind, &metav1.ListOptions{LabelSelector: client.LabelEngine + "=k8s"}, to)
		_ = meta.EachListItem(to, func(o runtime.Object) error {
			named, err := meta.Accessor(o)
			if err == nil {
				names = append(names, kind+"/"+named.GetName())
			}
			return err
		})
	}
	return names
}

// pool returns the node label of a pool of this site.
func (s *site) pool(name string) map[string]string {
	return map[string]string{"pool": s.namespace + "-" + name}
}

// with returns an engine's settings for the site.
func (s *site) with() pool.With {
	w := pool.With{Kubeconfig: s.config, Image: "user:1", AgentImage: "scrimp:1", User: 1000}
	for _, p := range []pool.Pool{{Name: "std", Rate: "3.60"}, {Name: "spot", Rate: "1.20", Capacity: "spot"}, {Name: "later", Rate: "0.90"},
		{Name: "parts", Rate: "0.90"}, {Name: "limited", Rate: "0.36", PriorityClass: "limited"}} {
		p.CPUs, p.Memory, p.Selector, p.Grace = 1, "1GiB", s.pool(p.Name), engine.Span(time.Second)
		w.Pools = append(w.Pools, p)
	}
	return w
}

// nodes adds simulated nodes to a pool.
func (s *site) nodes(pool, cpu string, n int) {
	s.Helper()
	s.Nodes(s, s.nodesOf(pool, cpu, n)...)
}

func (s *site) nodesOf(pool, cpu string, n int) (list []kubetest.Node) {
	for range n {
		list = append(list, kubetest.Node{Name: fmt.Sprintf("%s-%s-%d", s.namespace, pool, sites.Add(1)), CPU: cpu, Memory: "64Gi",
			Labels: s.pool(pool)})
	}
	return list
}

// driver returns a driver for the site.
func (s *site) driver() *Driver {
	s.Helper()
	return s.driverOf(s.with(), "http://127.0.0.1:9")
}

func (s *site) driverOf(w pool.With, server string) *Driver {
	s.Helper()
	e, err := Open(s.Context(), engine.Setting{Name: "k8s", Kind: Kind, Agents: server, With: engine.WithOf(w)}, engine.Host{})
	must.Do(s, err)
	d, ok := e.Driver.(*Driver)
	if !ok {
		s.Fatal("another driver")
	}
	s.Cleanup(d.close)
	return d
}

// rig is a site whose spot machines are evicted as soon as they run. With kill, the API server dies at each restart.
func (s *site) rig(kill bool) enginetest.Rig {
	s.Nodes(s, slices.Concat(s.nodesOf("std", "16", 2), s.nodesOf("spot", "4", 1), s.nodesOf("parts", "1", 1))...)
	s.Create(s, "/api/v1/namespaces/"+s.namespace+"/resourcequotas", `
apiVersion: v1
kind: ResourceQuota
metadata: {name: limited}
spec: {hard: {pods: "0"}, scopeSelector: {matchExpressions: [{operator: In, scopeName: PriorityClass, values: [limited]}]}}
`)
	s.Create(s, "/apis/scheduling.k8s.io/v1/priorityclasses", `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: limited}
value: 1
`)
	d := &again{Driver: s.driver()}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for wait.For(ctx, 200*time.Millisecond) == nil {
			var list corev1.PodList
			_ = s.admin.List(ctx, "pods", &metav1.ListOptions{LabelSelector: client.LabelPool + "=spot",
				FieldSelector: "status.phase=Running"}, &list) // the API server is down at times
			for n := range list.Items {
				_ = evict(ctx, s.admin, list.Items[n].Name)
			}
		}
	}()
	return enginetest.Rig{
		Driver: d, Granted: "k8s/std/1c-1g/on-demand", Fails: "k8s/spot/1c-1g/spot", Queued: "k8s/later/1c-1g/on-demand",
		Parts: "k8s/parts/1c-1g/on-demand", Consistency: usual.Consistency,
		Grant: func(_ testing.TB, key string) {
			if strings.HasPrefix(key, "g") {
				s.nodes("parts", "1", 2)
				return
			}
			s.nodes("later", "1", 1)
		},
		Refusals: []enginetest.Refusal{{Offer: "k8s/limited/1c-1g/on-demand", Err: engine.ErrQuota, Scope: "offer"}},
		Restart: func(t testing.TB) {
			if kill { // the API server dies with this server
				s.Kill(t, "kube-apiserver")
				s.Begin(t, "kube-apiserver")
				eventually.True(t, "an answer of the API server", func() bool { _, err := s.Try("get", "--raw", "/readyz"); return err == nil })
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			d.close()
			d.Driver = s.driver()
		},
		Foreign: func(t testing.TB) string {
			s.Do(t, "create", "job", "other", "-n", s.namespace, "--image=x", "--", "sleep")
			return "other"
		},
	}
}

// The driver passes the contract's tests on a real control plane, and its documentation page lists the cases.
func TestDriver_Conforms(t *testing.T) {
	t.Parallel()
	c := kubetest.Shared(t)
	results := enginetest.Run(t, func(t testing.TB) enginetest.Rig { return newSite(t, c).rig(false) })
	enginetest.Page(t, filepath.Join("..", "..", "..", "docs", "engines", "kubernetes.md"), results)
}

func TestDriver_ConformsWhileTheAPIServerDies(t *testing.T) {
	lane.Nightly(t, "it restarts the API server of the cluster that other tests share")
	c := kubetest.Start(t)
	enginetest.Run(t, func(t testing.TB) enginetest.Rig { return newSite(t, c).rig(true) })
}

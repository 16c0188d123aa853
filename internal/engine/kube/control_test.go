//go:build !local

package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/record"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

const std, later = "k8s/std/1c-1g/on-demand", "k8s/later/1c-1g/on-demand"

// Events in a cluster end machines with the right cause, and start none twice: on a real control plane with simulated
// nodes.
func TestControlPlane_EndsMachinesWithTheirCause(t *testing.T) {
	t.Parallel()
	c := kubetest.Shared(t)
	for _, what := range []struct {
		name string
		hold func(*site)
	}{
		{"a token expires", tokenExpires}, // the longest wait goes first
		{"a quota is spent, and is free", quotaFrees},
		{"nodes say what they cost", nodePrices}, {"Kueue admits a Job", admittedByKueue},
		{"a pod that is evicted", evicted}, {"a taint takes a node's pods", tainted},
		{"somebody deletes the Job", jobDeleted}, {"somebody deletes the record", recordDeleted},
		{"an admission policy refuses", admission}, {"two servers ask at once", twoServers},
		{"a pod goes while nobody watches", unseen}, {"a launch waits with the scheduler's words", waitsInWords},
		{"there is no such queue", noSuchQueue}, {"no node holds it", holdsNone}, {"what a pod asks for", asksFor},
		{"old records are removed with all that they own", collected},
		{"a machine begins before its launch has the answer", begunBeforeItsAnswer},
		{"a gang's pod is taken before it begins", partTaken}, {"a launch makes a Job too late", lateObjects},
		{"names, labels and annotations of any text", hostileTexts}, {"disks of 1 MiB and of 8 PiB", extremeDisks},
	} {
		t.Run(what.name, func(t *testing.T) {
			t.Parallel()
			what.hold(newSite(t, c))
		})
	}
}

// launched launches machines of the standard pool under a key.
func (s *site) launched(d *Driver, key string, nodes int) []engine.Instance {
	s.Helper()
	var list []engine.Instance
	s.until("the launch of "+key, func() bool {
		var err error
		list, err = s.ask(d, key, std, nodes)
		if err != nil && !errors.Is(err, engine.ErrPending) {
			s.Fatal(err)
		}
		return err == nil
	})
	return list
}

func (s *site) ask(d *Driver, key, offer string, nodes int) ([]engine.Instance, error) {
	return d.Launch(s.Context(), engine.Request{Key: key, Offer: engineOffer(offer), Nodes: nodes,
		Tags: map[string]string{"scrimp-job": "job"}, Env: map[string]string{"SCRIMP_TOKEN": "secret-word"}})
}

func (s *site) until(what string, ok func() bool) {
	s.Helper()
	eventually.True(s, what, ok, func() string {
		out, _ := s.Try("get", "pods,jobs,configmaps,events", "-n", s.namespace)
		return out
	})
}

// now returns the machine of a key in the list.
func (s *site) now(d *Driver, key string) engine.Instance {
	s.Helper()
	list, err := d.List(s.Context())
	must.Do(s, err)
	for _, i := range list {
		if i.Key == key {
			return i
		}
	}
	return engine.Instance{}
}

// ends waits for the end of a key's machine, checks its cause, and checks that nothing of it starts again.
func (s *site) ends(d *Driver, key string, cause engine.Cause) engine.Instance {
	s.Helper()
	var i engine.Instance
	s.until("the end of "+key, func() bool { i = s.now(d, key); return i.State == engine.Ended })
	if i.Cause != cause || i.Ended.Before(i.Launched) || len(i.Bill) != 1 || i.Bill[0].Amount != i.Rate.Until(i.Ended.Sub(i.Launched)) {
		s.Errorf("it ended as %+v, want it %s", i, cause)
	}
	s.until("its objects go", func() bool { return len(s.left()) == 0 })
	return i
}

// pods returns the names of a site's pods.
func (s *site) pods() (names []string) {
	s.Helper()
	var list corev1.PodList
	s.read("pods", &metav1.ListOptions{}, &list)
	for n := range list.Items {
		names = append(names, list.Items[n].Name)
	}
	return names
}

func (s *site) nodeOf(pod string) string {
	s.Helper()
	var p corev1.Pod
	must.Do(s, s.admin.Get(s.Context(), "pods", pod, &p))
	return p.Spec.NodeName
}

func evicted(s *site) {
	s.nodes("std", "4", 2)
	d := s.driver()
	s.launched(d, "a.1", 1)
	s.Evict(s, s.namespace, s.pods()[0])
	s.ends(d, "a.1", engine.Interrupted)
}

func tainted(s *site) {
	s.nodes("std", "4", 2)
	d := s.driver()
	s.launched(d, "a.1", 1)
	s.Do(s, "taint", "node", s.nodeOf(s.pods()[0]), "maintenance=now:NoExecute")
	s.ends(d, "a.1", engine.Interrupted)
}

// A machine on a removed node is interrupted once Kubernetes has collected its pod.
func TestRemovedNode_InterruptsItsMachine(t *testing.T) {
	lane.Nightly(t, "Kubernetes collects the pods of a node 40 s after its removal")
	t.Parallel()
	s := newSite(t, kubetest.Shared(t))
	s.nodes("std", "4", 2)
	d := s.driver()
	s.launched(d, "a.1", 1)
	began := time.Now()
	s.Do(s, "delete", "node", s.nodeOf(s.pods()[0]))
	s.ends(d, "a.1", engine.Interrupted)
	s.Logf("from the removal of a node to the end of its machine: %v", time.Since(began).Round(100*time.Millisecond))
}

func jobDeleted(s *site) {
	s.nodes("std", "4", 1)
	d := s.driver()
	s.launched(d, "a.1", 1)
	s.Do(s, "delete", "jobs", "--all", "-n", s.namespace)
	s.ends(d, "a.1", engine.Interrupted)
}

func recordDeleted(s *site) {
	s.nodes("std", "4", 1)
	d := s.driver()
	first := s.launched(d, "a.1", 1)[0]
	s.Do(s, "delete", "configmaps", "-l", "scrimp.dev/kind=record", "-n", s.namespace)
	end := s.ends(d, "a.1", engine.Interrupted)
	if again := s.launched(d, "a.1", 1)[0]; again.ID != first.ID || !again.Ended.Equal(end.Ended) {
		s.Errorf("asked again it is %+v, and had ended as %+v", again, end)
	}
}

func admission(s *site) {
	s.nodes("std", "4", 1)
	d := s.driver()
	s.Apply(s, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: `+s.namespace+`}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]
  validations: [{expression: "has(object.metadata.labels.costcenter)", message: "a costcenter must be named"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: `+s.namespace+`}
spec:
  policyName: `+s.namespace+`
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+s.namespace+`}}}
`)
	var err error
	key := 0
	s.until("the policy is in force", func() bool {
		key++
		_, err = s.ask(d, fmt.Sprint("a.", key), std, 1)
		return engine.Refused(err)
	})
	if !errors.Is(err, engine.ErrRequest) || !strings.Contains(err.Error(), "a costcenter must be named") {
		s.Errorf("refused as %v", err)
	}
	name := record.NameOf(fmt.Sprint("a.", key))
	if left := s.Do(s, "get", "configmaps,jobs,secrets", "-n", s.namespace, "-o", "name"); strings.Contains(left, name) {
		s.Errorf("a request that was refused leaves\n%s", left)
	}
}

func quotaFrees(s *site) {
	s.nodes("std", "4", 1)
	d := s.driver()
	quota := `
apiVersion: v1
kind: ResourceQuota
metadata: {name: all, namespace: ` + s.namespace + `}
spec: {hard: {pods: "%d"}}
`
	s.Apply(s, fmt.Sprintf(quota, 1))
	s.launched(d, "a.1", 1)
	s.until("the quota counts", func() bool { // until then it limits nothing
		return s.Do(s, "get", "quota", "all", "-n", s.namespace, "-o", "jsonpath={.status.used.pods}") == "1"
	})
	_, err := s.ask(d, "a.2", std, 1)
	for errors.Is(err, engine.ErrPending) { // the Job controller has not tried yet
		_, err = s.ask(d, "a.2", std, 1)
	}
	if !errors.Is(err, engine.ErrQuota) || !strings.Contains(err.Error(), "exceeded quota: all") {
		s.Errorf("beyond the quota: %v", err)
	}
	s.Apply(s, fmt.Sprintf(quota, 2))
	s.launched(d, "a.2", 1) // a refused key was not used
	if pods := s.pods(); len(pods) != 2 {
		s.Errorf("two machines are %v", pods)
	}
}

func twoServers(s *site) {
	s.nodes("std", "16", 1)
	a, b := s.driver(), s.driver()
	ids := make([]string, 16)
	var wg sync.WaitGroup
	for n := range ids {
		d := a
		if n%2 > 0 {
			d = b
		}
		wg.Go(func() { ids[n] = s.launched(d, fmt.Sprint("a.", n%4), 1)[0].ID })
	}
	wg.Wait()
	if pods := s.pods(); len(pods) != 4 {
		s.Errorf("4 keys made the pods %v", pods)
	}
	for n, id := range ids {
		if id != ids[n%4] {
			s.Errorf("key a.%d is %s and %s", n%4, ids[n%4], id)
		}
	}
	if err := b.Terminate(s.Context(), ids[0]); err != nil {
		s.Error(err)
	}
	for _, d := range []*Driver{a, b} {
		s.until("its end", func() bool { return s.now(d, "a.0").State == engine.Ended })
	}
	if x, y := s.now(a, "a.0"), s.now(b, "a.0"); !x.Ended.Equal(y.Ended) || x.Cause != y.Cause {
		s.Errorf("it ended as %+v, and as %+v", x, y)
	}
}

func unseen(s *site) {
	s.nodes("std", "4", 1)
	d := s.driver()
	s.launched(d, "a.1", 1)
	s.now(d, "a.1")
	d.close() // its server dies
	s.Evict(s, s.namespace, s.pods()[0])
	s.until("the pod goes", func() bool { return len(s.pods()) == 0 })
	gone := time.Now()
	eventually.Past(s, gone.Add(2*time.Second)) // Kubernetes reports whole seconds
	i := s.ends(s.driver(), "a.1", engine.Interrupted)
	if i.Ended.After(gone.Add(time.Second)) {
		s.Errorf("it ended at %v, and its pod was gone at %v", i.Ended, gone)
	}
}

func waitsInWords(s *site) {
	d := s.driver()
	_, err := s.ask(d, "a.1", later, 1)
	why, ok := errors.AsType[*engine.PendingError](err)
	if !ok || !strings.Contains(why.Why, "waits for a node") {
		s.Fatalf("without a node: %v", err)
	}
	s.until("the scheduler's word", func() bool {
		_, err := s.ask(d, "a.1", later, 1)
		return strings.Contains(err.Error(), "didn't match Pod's node affinity/selector")
	})
	ctx, stop := context.WithTimeout(s.Context(), eventually.Limit)
	defer stop()
	if err := d.Cancel(ctx, "a.1"); err != nil {
		s.Error(err)
	}
	s.until("nothing is left of it", func() bool { return len(s.left()) == 0 })
}

// noSuchQueue requests a Kueue queue in a cluster that has none: the launch and the examination both report it.
func noSuchQueue(s *site) {
	s.nodes("std", "4", 1)
	w := s.with()
	w.Kubeconfig, w.Namespace = s.Kubeconfig(), s.namespace
	w.Pools = w.Pools[:1]
	w.Pools[0].Queue = "vision"
	d := s.driverOf(w, "http://127.0.0.1:9")
	_, err := s.ask(d, "a.1", std, 1)
	for errors.Is(err, engine.ErrPending) {
		_, err = s.ask(d, "a.1", std, 1)
	}
	if !errors.Is(err, engine.ErrRequest) || !strings.Contains(err.Error(), "there is no queue vision") {
		s.Errorf("refused as %v", err)
	}
	said := ""
	for _, f := range d.Examine(s.Context()) {
		if !f.OK {
			said += f.Name + ": " + f.Text
		}
	}
	if !strings.Contains(said, "pool std: there is no queue vision in namespace "+s.namespace) {
		s.Errorf("the examination finds %q", said)
	}
	if left := s.Do(s, "get", "pods,jobs", "-n", s.namespace, "-o", "name"); left != "" {
		s.Errorf("left is %s", left)
	}
}

//go:build !local

package kube

import (
	"errors"
	"strings"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/record"
)

// localQueues is the part of Kueue's LocalQueue definition that this engine uses.
const localQueues = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: localqueues.kueue.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/kueue"}
spec:
  group: kueue.x-k8s.io
  names: {kind: LocalQueue, plural: localqueues, singular: localqueue}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// admittedByKueue plays the role of Kueue, which lets a suspended Job of its queue start. Until then the launch waits
// with Kueue's message.
func admittedByKueue(s *site) {
	s.nodes("std", "4", 2)
	s.Apply(s, localQueues)
	s.Do(s, "wait", "--for=condition=Established", "crd/localqueues.kueue.x-k8s.io", "--timeout=1m")
	s.Apply(s, "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\n"+
		"metadata: {name: vision, namespace: "+s.namespace+"}\n")
	w := s.with()
	w.Pools = w.Pools[:1]
	w.Pools[0].Queue = "vision"
	s.Apply(s, Role(&w, s.namespace)) // its user may see queues now
	d := s.driverOf(w, "http://127.0.0.1:9")
	for _, f := range d.Examine(s.Context()) {
		if !f.OK {
			s.Errorf("%s: %s", f.Name, f.Text)
		}
	}
	s.until("it waits in the queue", func() bool {
		_, err := s.ask(d, "a.1", std, 2)
		if !errors.Is(err, engine.ErrPending) {
			s.Fatalf("it is not suspended: %v", err)
		}
		return strings.Contains(err.Error(), "Kueue has not admitted it (queue vision)")
	})
	name := record.NameOf("a.1")
	said := s.Do(s, "get", "job", name, "-n", s.namespace, "-o",
		`jsonpath={.spec.suspend} {.metadata.labels.kueue\.x-k8s\.io/queue-name} {.spec.completionMode} {.spec.completions}`)
	if said != "true vision Indexed 2" || len(s.pods()) > 0 {
		s.Errorf("the Job is %q, with pods %v", said, s.pods())
	}
	s.Do(s, "patch", "job", name, "-n", s.namespace, "--type=merge", "-p", "spec: {suspend: false}")
	if list := s.launched(d, "a.1", 2); len(list) != 2 {
		s.Errorf("admitted are %+v", list)
	}
	s.Do(s, "patch", "job", name, "-n", s.namespace, "--type=merge", "-p", "spec: {suspend: true}") // Kueue preempts it
	s.until("both are interrupted", func() bool {
		all, err := d.List(s.Context())
		ended := 0
		for _, i := range all {
			if i.Key == "a.1" && i.State == engine.Ended && i.Cause == engine.Interrupted {
				ended++
			}
		}
		return err == nil && ended == 2
	})
}

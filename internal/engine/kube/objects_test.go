//go:build !local

package kube

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/record"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

func engineOffer(s string) market.OfferID { return market.OfferID(s) }

// asksFor checks a pod's requests and rights in the API server, and that it contains no secret.
func asksFor(s *site) {
	s.nodes("std", "4", 1)
	d := s.driver()
	s.launched(d, "a.1", 2)
	a := s.admin
	var p corev1.Pod
	must.Do(s, a.Get(s.Context(), "pods", s.pods()[0], &p))
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		if c.SecurityContext == nil || *c.SecurityContext.AllowPrivilegeEscalation || len(c.SecurityContext.Capabilities.Drop) != 1 {
			s.Errorf("container %s may %+v", c.Name, c.SecurityContext)
		}
		for _, v := range c.Env {
			if strings.Contains(v.Value, "secret-word") {
				s.Errorf("%s has the token in %s", c.Name, v.Name)
			}
		}
	}
	main := &p.Spec.Containers[0]
	if cpu, memory := main.Resources.Requests.Cpu(), main.Resources.Requests.Memory(); cpu.MilliValue() != 1000 ||
		memory.Value() != 1<<30 || main.Resources.Limits.Memory().Value() != 1<<30 {
		s.Errorf("it asks for %v and %v, at most %v", cpu, memory, main.Resources.Limits)
	}
	if *p.Spec.AutomountServiceAccountToken || !*p.Spec.SecurityContext.RunAsNonRoot || p.Labels[client.LabelJob] != "job" ||
		*p.Spec.TerminationGracePeriodSeconds != 1 || p.Spec.Subdomain == "" || len(p.Spec.TopologySpreadConstraints) != 1 {
		s.Errorf("the pod is %+v", p.Spec)
	}
	for _, v := range p.Spec.Volumes {
		if v.Name == "shm" && v.EmptyDir.SizeLimit.Value() != 512<<20 {
			s.Errorf("/dev/shm has %v", v.EmptyDir.SizeLimit)
		}
	}
	var service corev1.Service
	if err := a.Get(s.Context(), "services", record.NameOf("a.1"), &service); err != nil || service.Spec.ClusterIP != "None" {
		s.Errorf("the gang's service: %v, %v", err, service.Spec)
	}
}

// collected lets a record grow old: it is deleted with everything that it owns.
func collected(s *site) {
	s.nodes("std", "4", 1)
	d := s.driver()
	i := s.launched(d, "a.1", 1)[0]
	if err := d.Terminate(s.Context(), i.ID); err != nil {
		s.Fatal(err)
	}
	s.ends(d, "a.1", "terminated")
	a, err := d.look(s.Context())
	must.Do(s, err)
	old := time.Now().Add(-2*time.Hour - time.Minute)
	if _, err := d.records.Change(s.Context(), a, "a.1", func(r *record.Record) { r.Closed = old }); err != nil {
		s.Fatal(err)
	}
	other := s.driver()
	if x := s.now(other, "a.1"); x.ID != "" {
		s.Errorf("listed is %+v", x)
	}
	var m corev1.ConfigMap
	if err := a.Get(s.Context(), "configmaps", record.NameOf("a.1"), &m); !apierrors.IsNotFound(err) {
		s.Errorf("its record stays: %v", err)
	}
}

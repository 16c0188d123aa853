//go:build !local

package kube

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"scrimp/internal/engine"
	"scrimp/internal/test/must"
)

// hostileTexts requests machines with arbitrary texts as keys and tags: the objects are created with exactly these
// texts, and the machines can be terminated.
func hostileTexts(s *site) {
	s.nodes("std", "16", 1)
	d := s.driver()
	for n, text := range []string{"a\nb: c\n---\nkind: Pod", `"}, {"$(SCRIMP_TOKEN)`, "$(SCRIMP_SERVER) ${HOME}", "../../secrets/x?a=b#c",
		"ünïcödé 名前 \u202e", "\x1b]0;owned\a", "-", strings.Repeat("名", 300), strings.Repeat("n", 63) + "-", "nul\x00byte",
		"{{.Values.x}}", "a,b in (c)"} {
		var list []engine.Instance
		s.until("a machine", func() (ok bool) {
			var err error
			list, err = d.Launch(s.Context(), engine.Request{Key: text, Offer: std, Nodes: 1, Tags: map[string]string{
				"scrimp-job": text, "scrimp-installation": text, "scrimp-attempt": text},
				Env: map[string]string{"SCRIMP_TOKEN": "secret-word", "SCRIMP_TASK_USER": "same"}})
			if err != nil && !errors.Is(err, engine.ErrPending) {
				s.Fatalf("%d, %q: %v", n, text, err)
			}
			return err == nil
		})
		other := s.driver() // it knows only what is in the cluster
		i := s.now(other, text)
		if i.ID != list[0].ID || i.Tags["scrimp-job"] != text || i.Key != text {
			s.Errorf("%d, %q: another server knows %+v", n, text, i)
		}
		var p corev1.Pod
		must.Do(s, s.admin.Get(s.Context(), "pods", s.pods()[0], &p))
		for _, v := range p.Spec.Containers[0].Env {
			if strings.Contains(v.Value, "secret-word") {
				s.Errorf("%d, %q: %s has the token", n, text, v.Name)
			}
		}
		if err := other.Terminate(s.Context(), list[0].ID); err != nil {
			s.Errorf("%d, %q: %v", n, text, err)
		}
		s.until("its pod is gone", func() bool { return len(s.left()) == 0 || len(s.pods()) == 0 })
	}
}

// extremeDisks requests the largest and smallest disks that settings allow: a request too large for any node waits
// with the scheduler's message, and can be cancelled.
func extremeDisks(s *site) {
	s.nodes("std", "4", 1)
	for disk, want := range map[string]string{"1MiB": "", "1000000000000000B": "ephemeral-storage", "8192TiB": "ephemeral-storage"} {
		w := s.with()
		w.Pools = w.Pools[:1]
		w.Pools[0].Disk = disk
		d := s.driverOf(w, "http://127.0.0.1:9")
		s.until("the word on "+disk, func() bool {
			list, err := s.ask(d, disk, std, 1)
			if want == "" {
				return err == nil && len(list) == 1
			}
			return errors.Is(err, engine.ErrPending) && strings.Contains(err.Error(), want)
		})
		if err := d.Cancel(s.Context(), disk); err != nil && !errors.Is(err, engine.ErrNotFound) {
			s.Errorf("%s: %v", disk, err)
		}
	}
}

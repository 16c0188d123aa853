//go:build !local

package kube

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/test/must"
)

// slowAnswer calls a hook between an action of the API server and its answer.
type slowAnswer struct {
	rt     http.RoundTripper
	before func()
}

func (a *slowAnswer) RoundTrip(q *http.Request) (*http.Response, error) {
	answer, err := a.rt.RoundTrip(q)
	if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/jobs") && err == nil {
		a.before()
	}
	return answer, err
}

// begunBeforeItsAnswer checks that a machine is kept if it is known to have started before its launch has the answer.
func begunBeforeItsAnswer(s *site) {
	s.nodes("std", "4", 1)
	other, d := s.driver(), s.driver()
	d.wrap = func(rt http.RoundTripper) http.RoundTripper {
		return &slowAnswer{rt, func() {
			s.until("another server has it in its list", func() bool { return s.now(other, "a.1").State == engine.Running })
		}}
	}
	list, err := s.ask(d, "a.1", std, 1)
	if err != nil || len(list) != 1 || list[0].State != engine.Running {
		s.Errorf("launched as %+v, %v", list, err)
	}
	if i := s.now(other, "a.1"); i.State != engine.Running || len(s.pods()) != 1 {
		s.Errorf("it is %+v, with the pods %v", i, s.pods())
	}
}

// refuses is a transport that loses a given number of requests to delete Jobs.
type refuses struct {
	rt   http.RoundTripper
	left atomic.Int32
}

func (f *refuses) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method == http.MethodDelete && strings.Contains(q.URL.Path, "/jobs/") && f.left.Add(-1) >= 0 {
		return nil, errFault
	}
	return f.rt.RoundTrip(q)
}

// lateObjects checks that objects created by a launch after its request ended are removed: its Job, even if the first
// deletion fails, and after a while everything without a pod, by any server.
func lateObjects(s *site) {
	s.nodes("std", "4", 1)
	d, way := s.driver(), &refuses{}
	d.wrap = func(rt http.RoundTripper) http.RoundTripper { way.rt = rt; return way }
	first := s.launched(d, "a.1", 1)[0]
	a, err := d.look(s.Context())
	must.Do(s, err)
	r, err := d.records.Known(s.Context(), a, "a.1")
	must.Do(s, err)
	sale, err := d.saleOf(&engine.Request{Key: "a.1", Offer: std}, r)
	must.Do(s, err)
	must.Do(s, d.Terminate(s.Context(), first.ID))
	ended := func() bool { return s.now(d, "a.1").State == engine.Ended && len(s.left()) == 0 }
	s.until("it has ended", ended)
	way.left.Store(1)
	must.Do(s, a.Create(s.Context(), "jobs", d.template().Job(r, sale, map[string]string{}), false))
	s.until("the late Job is removed", func() bool {
		_, _ = d.List(s.Context())
		return way.left.Load() < 1 && len(s.left()) == 0
	})
	secret, err := d.template().Secret(r, "late")
	if err == nil {
		err = a.Create(s.Context(), "secrets", secret, false)
	}
	must.Do(s, err)
	other := s.driver()
	s.now(other, "a.1")
	if r, err = other.records.Known(s.Context(), a, "a.1"); err != nil {
		s.Fatal(err)
	}
	c := r.Copied()
	c.Closed = time.Now().Add(-2 * lateLaunch)
	other.records.Remember(c)
	s.until("the late Secret is removed", func() bool { _, _ = other.List(s.Context()); return len(s.left()) == 0 })
}

// partTaken checks that a gang is refused at once, along with what has started, if one of its pods is preempted
// before it starts: it must not wait, at the cost of the others, for a pod that never comes.
func partTaken(s *site) {
	s.nodes("std", "1", 1)
	d := s.driver()
	var first engine.Instance
	s.until("one has begun, and one waits for a node", func() bool {
		list, err := s.ask(d, "a.1", std, 2)
		if !errors.Is(err, engine.ErrPending) || len(list) > 1 {
			s.Fatalf("launched as %+v, %v", list, err)
		}
		if len(list) == 1 {
			first = list[0]
		}
		return len(list) == 1 && len(s.pods()) == 2
	})
	for _, pod := range s.pods() {
		if s.nodeOf(pod) == "" {
			s.Evict(s, s.namespace, pod)
		}
	}
	s.until("the rest is refused", func() bool {
		list, err := s.ask(d, "a.1", std, 2)
		if len(list) > 1 || len(list) == 1 && list[0].ID != first.ID || err == nil {
			s.Fatalf("launched as %+v, %v", list, err)
		}
		return len(list) == 1 && errors.Is(err, engine.ErrNoCapacity) && engine.Refused(err) &&
			strings.Contains(err.Error(), "evicted before")
	})
	if list, err := s.ask(s.driver(), "a.1", std, 2); len(list) != 1 || list[0].ID != first.ID || !engine.Refused(err) {
		s.Errorf("asked again by another server: %+v, %v", list, err)
	}
	if err := d.Terminate(s.Context(), first.ID); err != nil {
		s.Error(err)
	}
	s.until("nothing is left", func() bool { return s.now(d, "a.1").State == engine.Ended && len(s.left()) == 0 })
}

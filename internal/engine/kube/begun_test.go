//go:build !local

package kube

import (
	"net/http"
	"strings"

	"scrimp/internal/engine"
)

// slowAnswer lets something happen between what the API server has done and its answer.
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

// begunBeforeItsAnswer holds that a machine which is known to have begun before its launch has the answer is kept.
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

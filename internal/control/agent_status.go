package control

import (
	"slices"
	"sync"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/wire/api"
)

// Latest is the newest status of one rank of an attempt, which need not be an event yet.
type Latest struct {
	attempt string
	node    int

	Heard time.Time // wall
	Step  api.Step
	Usage api.Usage
	// Trouble is what goes wrong on the machine now; empty: nothing does.
	Trouble string

	top     int64       // highest message that is heard for good; 0: the core knows
	said    int64       // highest message that is an event
	put     int64       // highest that is in events which are being proposed; 0: none is
	told    time.Time   // when progress last became an event, wall
	used    time.Time   // when usage did
	taken   int64       // highest message whose progress or usage waits here, or has waited
	step    api.Message // newest progress, where it is no event yet
	values  []heard     // of what the job is judged by, likewise, in order
	decides bool        // one of them ends the job
	usage   api.Message // newest usage, likewise: its processors are the mean of count reports
	count   int
	noticed bool      // it said that its machine will be interrupted
	idle    bool      // the last usage that was an event said so
	low     time.Time // since when every usage has said so, wall; zero: the newest does not
	metric  policy.Metric
	seen    policy.Seen // what the metric came to so far
	trial   bool        // a search waits for each value
	known   bool        // metric, seen, trial and since were asked for
	since   time.Time   // when the attempt was asked for, market time: nothing of it is older
	began   time.Time   // when progress or usage was heard first, wall
	orders  api.Orders  // what the agent was told last
	ordered time.Time   // when that was so, wall; zero: never
	// telling has a value while somebody makes events of what the attempt has said, so
	// that no value is in two.
	telling chan struct{}
}

// heard is a value of the metric that a job is judged by, with the number of its message
// and when that was written, by the wall.
type heard struct {
	message int64
	at      time.Time
	value   policy.Value
}

// Values are what messages after one and up to another have said of the metric that the
// job is judged by, where it is no event yet.
func (l *Latest) Values(after, upTo int64) (list policy.Values) {
	for _, v := range l.values {
		if after < v.message && v.message <= upTo {
			list = append(list, v.value)
		}
	}
	return list
}

// ranks are what the agents of an attempt have said, by node; nil: that one was not heard.
type ranks []*Latest

// of is what the agent of a rank has said; nil: nothing.
func (r ranks) of(node int) *Latest {
	if node < 0 || node >= len(r) {
		return nil
	}
	return r[node]
}

// heard are those that were.
func (r ranks) heard() ranks {
	return slices.DeleteFunc(slices.Clone(r), func(l *Latest) bool { return l == nil })
}

// agentStatus is what agents have said lately. It is no event and no state: a server
// that is started again hears it again.
type agentStatus struct {
	mu   sync.Mutex
	by   map[string]ranks // by attempt
	live int              // machines that may still speak, as of the last poll
}

// hear notes that the agent of a rank has spoken. The caller holds the lock.
func (s *agentStatus) hear(attempt string, node int, now time.Time) *Latest {
	r := s.by[attempt]
	for len(r) <= node {
		r = append(r, nil)
	}
	if r[node] == nil {
		r[node] = &Latest{attempt: attempt, node: node, telling: make(chan struct{}, 1)}
	}
	s.by[attempt] = r
	r[node].Heard = now
	return r[node]
}

// last is when the rank last spoke; zero: never.
func (s *agentStatus) last(attempt string, node int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.by[attempt].of(node); l != nil {
		return l.Heard
	}
	return time.Time{}
}

// ranksOf are those of the attempt that were heard.
func (s *agentStatus) ranksOf(attempt string) ranks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[attempt].heard()
}

// all lets every agent count as heard now.
func (s *agentStatus) all(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.by {
		for _, l := range r.heard() {
			l.Heard = now
		}
	}
}

// keep forgets attempts that are not among the living, which have so many machines each, and
// were silent for a minute.
func (s *agentStatus) keep(living map[string]int, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = 0
	for _, nodes := range living {
		s.live += nodes
	}
	for attempt, r := range s.by {
		recent := func(l *Latest) bool { return l != nil && now.Sub(l.Heard) <= time.Minute }
		if living[attempt] == 0 && !slices.ContainsFunc(r, recent) {
			delete(s.by, attempt)
		}
	}
}

// locked calls f with the lock, which it gives back also where f panics.
func (s *agentStatus) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

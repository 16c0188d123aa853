package control

import (
	"slices"
	"sync"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/wire/api"
)

// Latest is the newest status of one rank of an attempt. It may be newer than the rank's last event.
type Latest struct {
	attempt string
	node    int

	Heard time.Time // wall time
	Step  api.Step
	Usage api.Usage
	// Trouble describes a current problem on the machine; empty means none.
	Trouble string

	top     int64       // highest message acknowledged for good; 0: the core knows
	said    int64       // highest message that is an event
	put     int64       // highest message in events that are being proposed; 0: none
	told    time.Time   // when progress last became an event, wall time
	used    time.Time   // when usage last became an event, wall time
	taken   int64       // highest message whose progress or usage has been buffered here
	step    api.Message // newest progress that is not an event yet
	values  []heard     // metric values that are not events yet, in order
	decides bool        // one of the values ends the job
	usage   api.Message // newest usage that is not an event yet; CPU is the mean of count reports
	count   int
	noticed bool      // the agent announced an interruption of its machine
	idle    bool      // the last usage event was idle
	low     time.Time // start of the current run of idle reports, wall time; zero: the newest is not idle
	metric  policy.Metric
	seen    policy.Seen // the metric's history so far
	trial   bool        // a search waits for each value
	known   bool        // metric, seen, trial and since have been read from the core
	since   time.Time   // when the attempt was requested, market time: none of its values is older
	began   time.Time   // first progress or usage, wall time
	orders  api.Orders  // last orders sent to the agent
	ordered time.Time   // when orders were sent, wall time; zero: never
	// telling holds a value while a goroutine turns the attempt's messages into events, so that no value enters two
	// events.
	telling chan struct{}
}

// heard is a value of the job's metric, with the number and wall time of its message.
type heard struct {
	message int64
	at      time.Time
	value   policy.Value
}

// Values returns the metric values of messages in (after, upTo] that are not events yet.
func (l *Latest) Values(after, upTo int64) (list policy.Values) {
	for _, v := range l.values {
		if after < v.message && v.message <= upTo {
			list = append(list, v.value)
		}
	}
	return list
}

// ranks holds the status of an attempt's agents by node; nil means that the agent has not reported.
type ranks []*Latest

// of returns the status of a node's agent; nil means that it has not reported.
func (r ranks) of(node int) *Latest {
	if node < 0 || node >= len(r) {
		return nil
	}
	return r[node]
}

// heard returns the ranks that have reported.
func (r ranks) heard() ranks {
	return slices.DeleteFunc(slices.Clone(r), func(l *Latest) bool { return l == nil })
}

// agentStatus holds the recent reports of agents. It is neither event nor state: after a restart the agents report
// again.
type agentStatus struct {
	mu   sync.Mutex
	by   map[string]ranks // by attempt
	live int              // machines that may still report, as of the last poll
}

// hear notes that the agent of a rank has reported. The caller holds the lock.
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

// last returns when the rank last reported; zero means never.
func (s *agentStatus) last(attempt string, node int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.by[attempt].of(node); l != nil {
		return l.Heard
	}
	return time.Time{}
}

// ranksOf returns the ranks of the attempt that have reported.
func (s *agentStatus) ranksOf(attempt string) ranks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[attempt].heard()
}

// all marks every agent as heard now.
func (s *agentStatus) all(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.by {
		for _, l := range r.heard() {
			l.Heard = now
		}
	}
}

// keep drops attempts that are not in living (machines by attempt) and have been silent for a minute.
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

// locked calls f with the lock held, and releases it even if f panics.
func (s *agentStatus) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

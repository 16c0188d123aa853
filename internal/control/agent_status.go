package control

import (
	"sync"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/policy"
)

// Latest is the newest status of an attempt, which need not be an event yet.
type Latest struct {
	Heard time.Time // wall
	Step  api.Step
	Usage api.Usage
	// Trouble is what goes wrong on the machine now; empty: nothing does.
	Trouble string

	top     int64       // highest message that is heard for good; 0: the core knows
	said    int64       // highest message that is an event
	told    time.Time   // when progress last became an event, wall
	used    time.Time   // when usage did
	step    api.Message // newest progress, or the one that decides, where it is no event yet
	decides bool        // step ends the job, by its metric
	best    api.Message // newest progress that was better than all before, where patience counts from it, likewise
	usage   api.Message // newest usage, likewise: its processors are the mean of count reports
	count   int
	idle    bool      // the last usage that was an event said so
	low     time.Time // since when every usage has said so, wall; zero: the newest does not
	metric  policy.Metric
	seen    policy.Seen // what the metric came to so far
	known   bool        // metric and seen were asked for
	began   time.Time   // when progress or usage was heard first, wall
	orders  api.Orders  // what the agent was told last
	ordered time.Time   // when that was so, wall; zero: never
}

// agentStatus is what agents have said lately. It is no event and no state: a server
// that is started again hears it again.
type agentStatus struct {
	mu   sync.Mutex
	of   map[string]*Latest // by attempt
	live int                // attempts that may still speak, as of the last poll
}

// hear notes that the attempt's agent has spoken. The caller holds the lock.
func (s *agentStatus) hear(attempt string, now time.Time) *Latest {
	l := s.of[attempt]
	if l == nil {
		l = &Latest{}
		s.of[attempt] = l
	}
	l.Heard = now
	return l
}

// heard is when the attempt last spoke; zero: never.
func (s *agentStatus) heard(attempt string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.of[attempt]; l != nil {
		return l.Heard
	}
	return time.Time{}
}

// all lets every agent count as heard now.
func (s *agentStatus) all(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.of {
		l.Heard = now
	}
}

// keep forgets who is not among the living and was silent for a minute.
func (s *agentStatus) keep(living map[string]bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = len(living)
	for attempt, l := range s.of {
		if !living[attempt] && now.Sub(l.Heard) > time.Minute {
			delete(s.of, attempt)
		}
	}
}

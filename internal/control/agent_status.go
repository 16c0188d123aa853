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
	put     int64       // highest that is in events which are being proposed; 0: none is
	told    time.Time   // when progress last became an event, wall
	used    time.Time   // when usage did
	taken   int64       // highest message whose progress or usage waits here, or has waited
	step    api.Message // newest progress, where it is no event yet
	values  []heard     // of what the job is judged by, likewise, in order
	decides bool        // one of them ends the job
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
		l = &Latest{telling: make(chan struct{}, 1)}
		s.of[attempt] = l
	}
	l.Heard = now
	return l
}

// last is when the attempt last spoke; zero: never.
func (s *agentStatus) last(attempt string) time.Time {
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

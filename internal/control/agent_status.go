package control

import (
	"sync"
	"time"

	"scrimp/internal/api"
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
	step    api.Message // newest progress, where it is no event yet
	usage   api.Message // newest usage, likewise
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

// All agents together send about so many reports a second at most, and about so
// much of what they say becomes an event, where it decides nothing: the log is
// kept for ever. Few agents are heard as often as they speak.
const (
	reportsASecond  = 1000
	progressASecond = 100
	usagesASecond   = 20
)

// Spans that few agents keep, on the wall.
const (
	reportAtLeast = 500 * time.Millisecond
	stepAtLeast   = 2 * time.Second
	usageAtLeast  = 10 * time.Second
	flushEvery    = 250 * time.Millisecond // what is due becomes an event
)

// share is how often each of n may do something that all together do rate times a second.
func share(n, rate int, least time.Duration) time.Duration {
	return max(least, time.Duration(n)*time.Second/time.Duration(rate))
}

// reportEvery is the pause between two reports of one of n agents, short enough
// that an agent is never taken for silent.
func (c *Control) reportEvery(n int) time.Duration {
	return min(share(n, reportsASecond, reportAtLeast), max(c.cfg.Silence/4, reportAtLeast))
}

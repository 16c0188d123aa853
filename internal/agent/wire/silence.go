package wire

import "time"

// Silence decides when the server has been unreachable for too long. It uses wall time without the
// monotonic clock, so the hours count in which a laptop sleeps. Since nobody can answer in that
// time, the server gets a moment after a gap before the agent gives up.
type Silence struct {
	limit    time.Duration // 0: never
	answered time.Time     // time of the last answer
	looked   time.Time
	patience time.Time // earliest time to give up after a gap
}

const (
	gap       = 20 * time.Second // longest time between two checks before the machine must have slept or its clock was set
	probation = 20 * time.Second // time that the server gets after a gap
)

// DefaultSilence is the limit for an assignment that sets none.
const DefaultSilence = 5 * time.Minute

// Wall returns t as wall time without the monotonic clock, so that time in which the machine sleeps counts.
func Wall(t time.Time) time.Time { return t.Round(0).UTC() }

// NewSilence starts at now, assuming that the server has just answered.
func NewSilence(limit time.Duration, now time.Time) Silence {
	return Silence{limit: limit, answered: Wall(now), looked: Wall(now)}
}

// Answer records that the server answered at now.
func (s *Silence) Answer(now time.Time) {
	if now = Wall(now); now.After(s.answered) {
		s.answered = now
	}
}

// Due reports whether the agent must save and switch off. The caller asks about once a second.
func (s *Silence) Due(now time.Time) bool {
	now = Wall(now)
	if now.Before(s.answered) { // the clock was set back
		s.answered = now
	}
	if now.Sub(s.looked) > gap {
		s.patience = now.Add(probation)
	}
	s.looked = now
	return s.limit > 0 && now.Sub(s.answered) > s.limit && !now.Before(s.patience)
}

package attempt

import "time"

// silence decides when a server has been away for too long. All times are the
// wall's, without the monotonic clock, so that the hours a laptop sleeps count;
// and because nobody could answer in them, the server gets a moment before the
// agent gives up.
type silence struct {
	limit    time.Duration // 0: never
	answered time.Time     // last answer
	looked   time.Time
	patience time.Time // not before this, after a gap
}

const (
	gap       = 20 * time.Second // between two looks: the machine slept or its clock was set
	probation = 20 * time.Second // for the server, after a gap
)

// Wall is a time by the wall, without the monotonic clock: hours in which the machine sleeps count.
func Wall(t time.Time) time.Time { return t.Round(0).UTC() }

// newSilence begins at now, when the server has just answered.
func newSilence(limit time.Duration, now time.Time) silence {
	return silence{limit: limit, answered: Wall(now), looked: Wall(now)}
}

// answer notes that the server answered at now.
func (s *silence) answer(now time.Time) {
	if now = Wall(now); now.After(s.answered) {
		s.answered = now
	}
}

// due reports whether the agent must save and switch off. It is asked about once a second.
func (s *silence) due(now time.Time) bool {
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

package save

import "time"

// source describes how a checkpoint was found.
type source struct {
	announced bool // the program announced it
	final     bool // found after the program had ended
	late      bool // the program failed, or a signal killed it, some time after it was written

	noticed time.Time // when the listing began that showed its last change; zero: no listing did
}

// Holds reports whether the newest published checkpoint is the newest capture.
func (s *Saver) Holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest.any && s.watch.captured == s.newest.files
}

// HasWork reports whether the newest published checkpoint contains all work up to a step. step is 0 for a program that
// counts no steps. Its checkpoint counts if the program wrote it after the signal to end, or just before it ended by
// itself, because the agent cannot know what the program did after an earlier one. A checkpoint whose last change only
// a listing after the signal shows counts, too: the listing before may be old, because the machine may have slept. A
// checkpoint found after the program's end contains all work unless the program wrote it some time before.
func (s *Saver) HasWork(step int64, e Ending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.newest
	switch {
	case n.final && !n.announced:
		return n.any && !n.late
	case step == 0 && !s.whole:
		end := e.Ended
		if !e.Asked.IsZero() {
			end = e.Asked
			if n.any && !n.noticed.IsZero() && !n.noticed.Before(e.Asked) {
				return true
			}
		}
		return n.any && end.Sub(n.meta.Captured) <= s.watch.quiet
	}
	return n.any && n.meta.Step >= step
}

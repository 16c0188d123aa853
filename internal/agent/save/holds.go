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

// HasWork reports whether the newest published checkpoint contains all work up to a step. Where the program counts no
// steps (0), it does if it was written when the program was asked to end, or just before it ended by itself: of
// earlier ones nobody knows what the program has done since. The listing before the signal may be old, since the
// machine may have slept, so a checkpoint counts as well if only a listing after the signal shows its last change. A
// checkpoint found after the program's end contains all work unless it was written some time before.
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

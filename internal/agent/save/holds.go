package save

// source describes how a checkpoint was found.
type source struct {
	announced bool // the program announced it
	final     bool // found after the program had ended
	late      bool // the program failed some time after it was written
}

// Holds reports whether the newest published checkpoint is the newest capture.
func (s *Saver) Holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest.any && s.watch.captured == s.newest.files
}

// HasWork reports whether the newest published checkpoint contains all work up to a step; 0: the
// program counts no steps. A checkpoint found after the program failed contains it all if it was
// written just before the failure.
func (s *Saver) HasWork(step int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.newest
	if n.final && !n.announced {
		return n.any && !n.late
	}
	return n.any && n.meta.Step >= step
}

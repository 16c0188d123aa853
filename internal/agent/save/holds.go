package save

// source is how a checkpoint was found.
type source struct {
	announced bool // the program said itself that it was complete
	final     bool // it was looked for when the program had ended
	late      bool // the program failed some time after it was written
}

// Holds reports whether the newest published checkpoint is what the folder held at the newest capture.
func (s *Saver) Holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest.any && s.watch.captured == s.newest.files
}

// HasWork reports whether the newest published checkpoint holds all that the program did up to a step; 0: it counts
// none. One that was found when the program had failed holds all where it was written just before that.
func (s *Saver) HasWork(step int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.newest
	if n.final && !n.announced {
		return n.any && !n.late
	}
	return n.any && n.meta.Step >= step
}

package lifecycle

import "scrimp/internal/decide/core/placement"

// TableReady has the jobs decided again that were without it.
func (ts *Attempts) TableReady(key string) {
	t := ts.market.Tables[key]
	if t == nil {
		return
	}
	delete(ts.market.Tables, key)
	waits := false
	for _, j := range t.Jobs {
		if placement.LookoutOf(j).Table != t {
			continue
		}
		placement.LookoutOf(j).Table = nil
		if j.Holds() {
			ts.market.Review.Add(j)
		} else {
			waits = true
		}
	}
	if waits {
		ts.queue.Queue.Changed()
	}
}

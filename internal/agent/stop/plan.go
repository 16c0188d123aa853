package stop

import "time"

// plan holds the times at which to signal and to kill a program.
type plan struct {
	signal, kill time.Time
}

// minSave is the minimum time for a save. Hugging Face's trainer waits 3 s before it starts one.
const minSave = 5 * time.Second

// late is the time for a save if the machine should already be terminated: clocks differ.
const late = 2 * time.Second

// planStop returns when to signal and when to kill if the provider terminates the machine at until.
// It leaves time for the upload after the kill. lead is how long before the end the program wants
// the signal; 0 means at once.
//
//	notice 120 s, upload 20 s, lead 0:     signal at once, kill after 100 s
//	notice 120 s, upload 20 s, lead 90 s:  signal after 30 s, kill after 100 s
//	notice 10 s, upload 20 s:              signal at once, kill after 5 s
func planStop(now, until time.Time, lead, upload time.Duration) plan {
	left := max(0, until.Sub(now))
	p := plan{signal: now, kill: now.Add(max(left-upload, min(max(left, late), minSave)))}
	if lead > 0 && lead < left {
		p.signal = until.Add(-lead)
	}
	if p.signal.After(p.kill) { // the upload takes longer than the lead
		p.signal = now
	}
	return p
}

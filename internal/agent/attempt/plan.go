package attempt

import "time"

// due reports whether a program with the helper should save now.
func due(now, lastSave time.Time, interval time.Duration, asked, stopping bool) bool {
	return asked || stopping || interval > 0 && now.Sub(lastSave) >= interval
}

// plan of a program's last moments: when to signal it, and when to kill it.
type plan struct {
	signal, kill time.Time
}

// shortest is what a program is given to save in any case; Hugging Face's trainer waits 3 s before it begins.
const shortest = 5 * time.Second

// late is what it is given where the machine should be gone already: clocks differ.
const late = 2 * time.Second

// planStop says when to signal and when to kill where the machine goes at
// until. The upload that follows needs time too. lead is how long before the
// end the program wants to be signalled; 0 is at once.
//
//	notice 120 s, upload 20 s, lead 0:     signal at once, kill after 100 s
//	notice 120 s, upload 20 s, lead 90 s:  signal after 30 s, kill after 100 s
//	notice 10 s, upload 20 s:              signal at once, kill after 5 s
func planStop(now, until time.Time, lead, upload time.Duration) plan {
	left := max(0, until.Sub(now))
	p := plan{signal: now, kill: now.Add(max(left-upload, min(max(left, late), shortest)))}
	if lead > 0 && lead < left {
		p.signal = until.Add(-lead)
	}
	if p.signal.After(p.kill) { // the upload takes longer than the lead
		p.signal = now
	}
	return p
}

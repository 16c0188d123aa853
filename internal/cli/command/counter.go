package command

import "time"

// Counter returns a function that shows the progress of a long computation on stderr, at most twice a second.
func (a *App) Counter() func(name string, done, of int) {
	_, tty := Terminal(a.Err)
	last := time.Time{}
	return func(name string, done, of int) {
		if !tty {
			return
		}
		if a.Counting = done < of; !a.Counting {
			a.Notef("\r\x1b[K")
		} else if now := a.Now(); now.Sub(last) > 500*time.Millisecond {
			last = now
			a.Notef("\r\x1b[K%s: %d of %d runs", name, done, of)
		}
	}
}

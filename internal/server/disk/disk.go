// Package disk says how much room the data folder's disk has, and how much of it the log of events is left.
package disk

import (
	"sync"
	"syscall"
	"time"
)

const (
	// LogReserve is how many bytes of disk output and blobs leave to the log of events.
	LogReserve = 512 << 20
	// EndReserve is how many bytes of it new jobs leave to the ends of those that are there.
	EndReserve = 64 << 20
)

// Room says how many bytes are free for us; ok is false where nobody can say.
type Room func() (free int64, ok bool)

// Of is the room in the folder. It asks the system now and then only.
func Of(dir string) Room {
	var (
		mu    sync.Mutex
		asked time.Time
		free  int64
		known bool
	)
	return func() (int64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(asked) > 2*time.Second {
			var s syscall.Statfs_t
			err := syscall.Statfs(dir, &s)
			asked, known = now, err == nil
			free = int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // their types differ between systems
		}
		return free, known
	}
}

// Full reports whether more than n bytes besides would take of what is left to the log, and how many are free.
func (r Room) Full(n int64) (free int64, full bool) {
	free, known := r()
	return free, known && free < LogReserve+max(0, n)
}

// Package disk says how much room the data folder's disk has, and how much of it the log of events is left.
package disk

import (
	"fmt"
	"math"
	"sync"
	"syscall"
	"time"
)

// Reserves: what output, blobs and work folders leave to the log of events, and what of that new jobs leave to the ends
// of those that are there. A program that runs needs files too, so entries of the file system (inodes) have reserves
// like bytes.
const (
	LogReserve = 512 << 20
	EndReserve = 64 << 20
	LogEntries = 4096
	EndEntries = 1024
)

// Left is what is free.
type Left struct {
	Bytes   int64
	Entries int64 // files and folders that can be made; math.MaxInt64 where the file system sets no number
}

// Free is Left of a file system that sets no number of entries.
func Free(bytes int64) Left { return Left{bytes, math.MaxInt64} }

// Room says how much is free for us; ok is false where nobody can say.
type Room func() (left Left, ok bool)

// The system is asked again after a while, and after so many questions: each may be followed by a file.
const (
	askedEvery = 2 * time.Second
	askedAfter = 256
)

// Of is the room in the folder. It asks the system now and then only.
func Of(dir string) Room {
	var (
		mu    sync.Mutex
		asked time.Time
		times int
		left  Left
		known bool
	)
	return func() (Left, bool) {
		mu.Lock()
		defer mu.Unlock()
		times++
		if now := time.Now(); now.Sub(asked) > askedEvery || times > askedAfter {
			var s syscall.Statfs_t
			err := syscall.Statfs(dir, &s)
			asked, times, known = now, 0, err == nil
			left = leftOf(&s)
		}
		return left, known
	}
}

// leftOf is what a file system says of itself. Some make entries as they need them, and say that they have none.
func leftOf(s *syscall.Statfs_t) Left {
	left := Free(int64(s.Bavail) * int64(s.Bsize)) //nolint:unconvert // their types differ between systems
	if s.Files > 0 {
		left.Entries = int64(s.Ffree) //nolint:unconvert // as above
	}
	return left
}

// Full says why n bytes besides would take of what is left to the log; nil: they do not.
func (r Room) Full(n int64) error {
	return r.short(Left{LogReserve + max(0, n), LogEntries}, Left{LogReserve, LogEntries}, "the log of events")
}

// Crowded says why a new job would take of what is left to the ends of those that are there; nil: it does not.
func (r Room) Crowded() error {
	reserve := Left{EndReserve, EndEntries}
	return r.short(reserve, reserve, "the log of the jobs that are there")
}

func (r Room) short(wanted, kept Left, what string) error {
	left, known := r()
	switch {
	case known && left.Bytes < wanted.Bytes:
		return fmt.Errorf("%d MiB are free, and %d MiB are kept for %s", left.Bytes>>20, kept.Bytes>>20, what)
	case known && left.Entries < wanted.Entries:
		return fmt.Errorf("the file system has room for %d files more (inodes), and %d are kept for %s", left.Entries,
			kept.Entries, what)
	}
	return nil
}

// Package disk measures the free space of the data folder's disk, and reserves some of it for the log of events.
package disk

import (
	"fmt"
	"math"
	"sync"
	"syscall"
	"time"
)

// Reserves: the space that output, blobs and work folders leave to the log of events, and the part of it that new
// jobs leave to the ends of existing ones. A running program needs files, too, so file system entries (inodes) have
// reserves like bytes.
const (
	LogReserve = 512 << 20
	EndReserve = 64 << 20
	LogEntries = 4096
	EndEntries = 1024
)

// Left is the free space.
type Left struct {
	Bytes   int64
	Entries int64 // files and folders that can be created; math.MaxInt64 if the file system has no limit
}

// Free returns a Left without a limit on entries.
func Free(bytes int64) Left { return Left{bytes, math.MaxInt64} }

// Room returns the free space; ok is false if it is unknown.
type Room func() (left Left, ok bool)

// Room asks the system again after askedEvery or after askedAfter calls, since a new file may follow each call.
const (
	askedEvery = 2 * time.Second
	askedAfter = 256
)

// Of returns the Room of a folder. It asks the system only now and then.
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

// leftOf converts the result of statfs. Some file systems create entries on demand and report none.
func leftOf(s *syscall.Statfs_t) Left {
	left := Free(int64(s.Bavail) * int64(s.Bsize)) //nolint:unconvert // their types differ between systems
	if s.Files > 0 {
		left.Entries = int64(s.Ffree) //nolint:unconvert // as above
	}
	return left
}

// Full returns an error if n more bytes would use space reserved for the log.
func (r Room) Full(n int64) error {
	return r.shortOf(Left{LogReserve + max(0, n), LogEntries}, Left{LogReserve, LogEntries}, "the log of events")
}

// Crowded returns an error if a new job would use space reserved for the ends of existing jobs.
func (r Room) Crowded() error {
	reserve := Left{EndReserve, EndEntries}
	return r.shortOf(reserve, reserve, "the log of existing jobs")
}

func (r Room) shortOf(wanted, kept Left, what string) error {
	left, known := r()
	switch {
	case known && left.Bytes < wanted.Bytes:
		return fmt.Errorf("%d MiB are free, and %d MiB are reserved for %s", left.Bytes>>20, kept.Bytes>>20, what)
	case known && left.Entries < wanted.Entries:
		return fmt.Errorf("the file system has room for %d more files (inodes), and %d are reserved for %s", left.Entries,
			kept.Entries, what)
	}
	return nil
}

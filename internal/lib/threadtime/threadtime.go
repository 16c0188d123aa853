// Package threadtime measures what a piece of work costs in processor time: on a busy machine most of the wall time is
// a wait.
package threadtime

import (
	"runtime"
	"time"
)

// Of runs f and returns the processor time that its goroutine used; where that is unknown, its wall time.
func Of(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun, before := time.Now(), used()
	f()
	if now := used(); now > 0 {
		return now - before
	}
	return time.Since(begun)
}

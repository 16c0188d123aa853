package threadtime

import (
	"syscall"
	"time"
)

// used returns the processor time of the calling thread; 0 if unknown.
func used() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package measure

import (
	"syscall"
	"time"
)

// threadTime returns the processor time that the calling thread has used; 0 if unknown.
func threadTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

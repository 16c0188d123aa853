package control

import (
	"time"

	"golang.org/x/sys/unix"
)

// thread is a clock id for a thread's processor time. clock_getcpuclockid(3) documents how it follows from the thread
// id.
type thread int32

func thisThread() thread { return thread(^unix.Gettid()<<3 | 6) }

// used returns the processor time that the thread has used.
func (t thread) used() (time.Duration, bool) {
	var v unix.Timespec
	if err := unix.ClockGettime(int32(t), &v); err != nil {
		return 0, false
	}
	return time.Duration(v.Nano()), true
}

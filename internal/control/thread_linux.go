package control

import (
	"time"

	"golang.org/x/sys/unix"
)

// thread is the clock of a thread's processor time: clock_getcpuclockid(3) says how it follows from its number.
type thread int32

func thisThread() thread { return thread(^unix.Gettid()<<3 | 6) }

// used is how much of a processor's time the thread has had.
func (t thread) used() (time.Duration, bool) {
	var v unix.Timespec
	if err := unix.ClockGettime(int32(t), &v); err != nil {
		return 0, false
	}
	return time.Duration(v.Nano()), true
}

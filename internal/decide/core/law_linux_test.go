package core

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// Thirty steps with their checks take less than a second of the thread's processor time, and so does each step.
// Other load on the machine does not count.
func TestStep_AcceptsExtremesWithinASecond(t *testing.T) {
	lane.Nightly(t, "it measures how long steps take")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var v unix.Timespec
		must.Do(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &v))
		return time.Duration(v.Nano())
	}
	most, of := time.Duration(0), uint64(0)
	for seed := range uint64(20_000) {
		began := used()
		nonsense(t, seed, 30, true)
		if took := used() - began; took > most {
			most, of = took, seed
		}
	}
	t.Logf("the longest sequence, %d, took %v", of, most)
	if most > time.Second {
		t.Errorf("sequence %d takes %v", of, most)
	}
}

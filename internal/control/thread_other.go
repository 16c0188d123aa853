//go:build !linux

package control

import "time"

// thread is empty: only Linux reports the processor time of other threads.
type thread struct{}

func thisThread() thread { return thread{} }

func (thread) used() (time.Duration, bool) { return 0, false }

// Package eventually waits for conditions, never for a fixed time. It is for tests only; tests in a testing/synctest
// bubble do not need it.
package eventually

import (
	"testing"
	"time"
)

// Limit ends a test that hangs. It is independent of the host's speed, and no test may rely on it.
const Limit = 5 * time.Minute

// True waits until ok returns true. After Limit it fails the test with the name of the condition and the results of
// the functions last, which describe the last state.
func True(t testing.TB, what string, ok func() bool, last ...func() string) {
	t.Helper()
	for begun := time.Now(); ; {
		asked := time.Now()
		if ok() {
			return
		}
		if time.Since(begun) < Limit {
			// A slow condition starts other programs: leave the processor to them.
			time.Sleep(max(10*time.Millisecond, time.Since(asked)))
			continue
		}
		state := ""
		for _, f := range last {
			state += "\n" + f()
		}
		t.Fatalf("not within %v: %s%s", Limit, what, state)
	}
}

// Past waits until the host's clock has passed a moment, for tests of what happens after it without any request.
func Past(t testing.TB, moment time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(moment)):
	case <-t.Context().Done():
		t.Fatal("the test is over")
	}
}

// Package await waits for conditions, never for a fixed span. It is for tests only, and a test in a testing/synctest
// bubble needs none of it.
package await

import (
	"testing"
	"time"
)

// Limit ends a test that hangs. It does not depend on how fast the machine is, and no test may rely on it.
const Limit = 5 * time.Minute

// True waits until ok returns true. After Limit it fails the test with the name of the condition and what the
// functions of last return: the last state of whatever was waited for.
func True(t testing.TB, what string, ok func() bool, last ...func() string) {
	t.Helper()
	for begun := time.Now(); ; {
		asked := time.Now()
		if ok() {
			return
		}
		if time.Since(begun) < Limit {
			// A condition that takes long to check starts other programs: leave the processor to what it asks about.
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

// Past waits until the clock of the machine has passed a moment: for a test of what happens while
// nobody looks, which begins then and no sooner.
func Past(t testing.TB, moment time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(moment)):
	case <-t.Context().Done():
		t.Fatal("the test is over")
	}
}

// Package await is for tests only: they wait for what they ask about, and never for a fixed span.
// What runs in a testing/synctest bubble needs none of it.
package await

import (
	"testing"
	"time"
)

// Limit ends a test that hangs. It says nothing of how long anything may take.
const Limit = 3 * time.Minute

// True waits until ok holds, and fails the test where it never does: what names it, and the
// functions of more say what is known by then.
func True(t testing.TB, what string, ok func() bool, more ...func() string) {
	t.Helper()
	for begun := time.Now(); ; {
		asked := time.Now()
		if ok() {
			return
		}
		if time.Since(begun) < Limit {
			time.Sleep(max(10*time.Millisecond, time.Since(asked))) // asking by other programs leaves room for what is asked
			continue
		}
		said := ""
		for _, f := range more {
			said += "\n" + f()
		}
		t.Fatalf("not within %v: %s%s", Limit, what, said)
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

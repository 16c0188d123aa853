package ssh

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/wait"
)

// A machine whose cable is out is named as one that does not answer, and no other; and no more once it is back.
func TestAMachineThatDoesNotAnswerIsNamed(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := newHurt(t, 1, dir)
		h.mu.Lock()
		h.calm = true // nothing happens but what is done here
		h.mu.Unlock()
		away := func() (names []string) {
			for range 20 { // polls
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				_, _, _ = h.d.Offers(ctx)
				cancel()
				_ = wait.For(t.Context(), 3*time.Second)
			}
			for _, m := range h.d.Away() {
				if names = append(names, m.Name); m.Err == nil {
					t.Errorf("%s is away, and nobody says why", m.Name)
				}
			}
			return names
		}
		if names := away(); len(names) > 0 {
			t.Errorf("all answer, and away are %v", names)
		}
		h.machines[1].cut()
		if names := away(); !slices.Equal(names, []string{h.machines[1].name}) {
			t.Errorf("%s is cut off, and away are %v", h.machines[1].name, names)
		}
		h.machines[1].restore()
		if names := away(); len(names) > 0 {
			t.Errorf("all answer again, and away are %v", names)
		}
		_ = h.d.Close(t.Context())
		_ = wait.For(t.Context(), 2*time.Minute) // what is under way is there
	})
}

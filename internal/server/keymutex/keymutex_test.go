package keymutex

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Actions of one name run one at a time and all get a turn; other names do not wait.
func TestTurns_RunOneAtATimeByName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		var all sync.WaitGroup
		var mu sync.Mutex
		at, most, done := map[string]int{}, map[string]int{}, 0
		begun := time.Now()
		for _, name := range []string{"a", "b"} {
			for range 50 {
				all.Go(func() {
					defer turns.Alone(name)()
					mu.Lock()
					at[name]++
					most[name] = max(most[name], at[name])
					mu.Unlock()
					time.Sleep(time.Second) // of the bubble
					mu.Lock()
					at[name]--
					done++
					mu.Unlock()
				})
			}
		}
		all.Wait()
		if most["a"] != 1 || most["b"] != 1 || done != 100 {
			t.Errorf("%v at once, %d of 100 had their turn", most, done)
		}
		if took := time.Since(begun); took != 50*time.Second {
			t.Errorf("two names took %v, want that of one", took)
		}
		if len(turns.busy) != 0 {
			t.Errorf("names are kept of what is over: %v", turns.busy)
		}
	})
}

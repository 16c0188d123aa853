package auth

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A further read waits for a turn, fails if none comes, and leaves nothing behind.
func TestReads_WaitForATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r Reads
		var ends []func()
		for range userReads {
			done, err := r.Take(t.Context(), "ann")
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, done)
		}
		begun := time.Now()
		if _, err := r.Take(t.Context(), "ann"); !errors.Is(err, errReads) || time.Since(begun) != readPatience {
			t.Errorf("one more: %v after %v", err, time.Since(begun))
		}
		got := make(chan func())
		go func() {
			done, _ := r.Take(t.Context(), "ann")
			got <- done
		}()
		synctest.Wait()
		ends[0]()
		(<-got)()
		for _, end := range ends[1:] {
			end()
		}
		if len(r.of) > 0 {
			t.Errorf("%d users are remembered of whom nothing is answered", len(r.of))
		}
	})
}

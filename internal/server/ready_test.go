package server

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// However many clients ask whether the server is ready, the database gets at most two queries per second, one at a
// time, and no answer is older than that.
func TestReady_ConcurrentRequestsShareOneQuery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r readiness
		questions, away := 0, errors.New("away")
		answer := error(nil)
		end := func(context.Context) (uint64, error) {
			questions++
			time.Sleep(100 * time.Millisecond) // of the bubble
			return 0, answer
		}
		flood := func() (wrong int) {
			var all sync.WaitGroup
			var mu sync.Mutex
			for range 1000 {
				all.Go(func() {
					if err := r.ask(t.Context(), end); !errors.Is(err, answer) {
						mu.Lock()
						defer mu.Unlock()
						wrong++
					}
				})
			}
			all.Wait()
			return wrong
		}
		if wrong := flood(); wrong > 0 || questions != 1 {
			t.Errorf("%d of 1,000 are told otherwise, by %d questions", wrong, questions)
		}
		answer = away
		time.Sleep(readyFor)
		if wrong := flood(); wrong > 0 || questions != 2 {
			t.Errorf("half a second later %d of 1,000 are told what is over, by %d questions", wrong, questions)
		}
		left, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(readyFor)
		answer = nil
		if err := r.ask(left, func(ctx context.Context) (uint64, error) { return 0, ctx.Err() }); err != nil {
			t.Errorf("one who leaves makes the server not ready: %v", err)
		}
	})
}

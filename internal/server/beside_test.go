package server

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/server/forecast"
	"scrimp/internal/view/projection"
)

// A forecast or a view that panics (here because it has no server) is restarted, and the other tasks go on.
func TestRunTasks_RestartsATaskThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of the bubble
		defer cancel()
		var owned sync.WaitGroup
		began := map[string]int{}
		var mu sync.Mutex
		count := func(what string, f func(context.Context)) func(context.Context) {
			return func(ctx context.Context) {
				mu.Lock()
				began[what]++
				mu.Unlock()
				f(ctx)
			}
		}
		runTasks(ctx, &owned, slog.New(slog.DiscardHandler), map[string]func(context.Context){
			"odds":  count("odds", (&forecast.Forecaster{}).Run),
			"view":  count("view", (*projection.Follower)(nil).Follow),
			"other": count("other", func(ctx context.Context) { <-ctx.Done() }),
		})
		owned.Wait()
		if began["odds"] < 2 || began["view"] < 2 || began["other"] != 1 {
			t.Errorf("begun %v", began)
		}
	})
}

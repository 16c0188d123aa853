package server

import (
	"context"
	"log/slog"
	"sync"

	"scrimp/internal/lib/isolate"
)

// runTasks starts the tasks, which run until ctx ends. It restarts a task that panics; the others go on.
func runTasks(ctx context.Context, owned *sync.WaitGroup, log *slog.Logger, tasks map[string]func(context.Context)) {
	for what, f := range tasks {
		owned.Go(func() { isolate.Retry(ctx, log, what, func() { f(ctx) }) })
	}
}

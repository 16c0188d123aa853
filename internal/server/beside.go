package server

import (
	"context"
	"log/slog"
	"sync"

	"scrimp/internal/lib/isolate"
)

// beside begins tasks until ctx ends. One that panics is begun again, and ends no other.
func beside(ctx context.Context, owned *sync.WaitGroup, log *slog.Logger, tasks map[string]func(context.Context)) {
	for what, f := range tasks {
		owned.Go(func() { isolate.Retry(ctx, log, what, func() { f(ctx) }) })
	}
}

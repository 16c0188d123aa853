package checkpoint

import (
	"context"
	"sync"
	"sync/atomic"
)

// parallel calls do for 0 to n-1 from the store's workers, each with a buffer of
// its own that holds size bytes, waits for them, and returns the first error.
// After an error it begins nothing more.
func (s *Store) parallel(ctx context.Context, n int, size int64,
	do func(ctx context.Context, buffer []byte, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, s.workers) {
		wg.Go(func() {
			buffer := make([]byte, size)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, buffer, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// Package wait is the pause that ends early: what every loop that polls or tries again
// does between two rounds.
package wait

import (
	"context"
	"time"
)

// For waits for d, or until ctx is done: then it returns why.
func For(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

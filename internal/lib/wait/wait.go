// Package wait provides the interruptible pause between two rounds of loops that poll or retry.
package wait

import (
	"context"
	"time"
)

// For waits for d, or until ctx is done; then it returns the reason.
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

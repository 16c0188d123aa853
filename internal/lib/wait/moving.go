package wait

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Moving returns a context that ends once there was no progress for d. The caller calls moved after each progress, and
// end when the work is over.
func Moving(ctx context.Context, d time.Duration) (within context.Context, moved, end func()) {
	within, cancel := context.WithCancelCause(ctx)
	t := time.AfterFunc(d, func() { cancel(fmt.Errorf("nothing has moved for %v", d)) })
	var mu sync.Mutex
	over := false
	moved = func() {
		mu.Lock()
		defer mu.Unlock()
		if !over && within.Err() == nil {
			t.Reset(d)
		}
	}
	return within, moved, func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		t.Stop()
		cancel(context.Canceled)
	}
}

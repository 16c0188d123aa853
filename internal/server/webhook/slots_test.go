package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"scrimp/internal/server/tries"
	"scrimp/internal/test/eventually"
)

// A hundred jobs of one user whose webhook does not answer hold eight connections, and another user's webhook is
// called meanwhile.
func TestSlots_HangingWebhookHoldsFewConnections(t *testing.T) {
	t.Parallel()
	tell, _ := patient(t)
	tell.pause = func(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return ctx.Err() }
	var mu sync.Mutex
	now, most := 0, 0
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when its client leaves
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-r.Context().Done()
		mu.Lock()
		now--
		mu.Unlock()
	}))
	defer hangs.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			_, _ = tell.Deliver(ctx, hangs.URL, "ann", fmt.Sprint("j", i), "key", word{}, tries.Progress{})
		})
	}
	eventually.True(t, "the webhook is asked", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return now >= userSlots
	})
	quick := newHook(t, func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusOK) })
	if _, err := tell.Deliver(ctx, quick.URL, "bob", "k", "key", someWord(), tries.Progress{}); err != nil {
		t.Errorf("another user's webhook is not told: %v", err)
	}
	cancel()
	all.Wait()
	if most > userSlots {
		t.Errorf("%d connections of one user at once", most)
	}
	if len(tell.slots.of) > 0 || len(tell.slots.all) > 0 {
		t.Errorf("%d users and %d slots are left", len(tell.slots.of), len(tell.slots.all))
	}
}

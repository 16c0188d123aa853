package jobs

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"scrimp/internal/lib/wait"
	"scrimp/internal/server/auth"
)

// Watchers share the server's time: what one costs is counted in bytes, and each user has so many a second with
// whatever streams, and all users together four times as many. So a thousand watchers take a part of one processor, and
// who has one stream waits for nobody who has a hundred.
const (
	shareRate = 8 << 20 // bytes a second
	shareFull = 2 << 20
	allShare  = 4

	wakeCost  = 4 << 10 // of looking whether there is something, and of sending it
	eventCost = 2 << 10 // of reading an event of the log
	logPart   = 16      // of the output of programs, which is sent as it lies, a byte in so many counts
)

// burst is for how long changes gather until a watcher looks, about: of a thousand not all look at the same moment.
const burst = 100 * time.Millisecond

// share is what watchers take of the server's time.
type share struct{ each, all *auth.Pace }

func newShare() share {
	each := auth.NewBurst(shareRate, shareFull)
	return share{each, each.Times(allShare)}
}

// pay waits until the caller's user may take so much. It fails where the caller has left.
func (s share) pay(ctx context.Context, user string, cost int) error {
	for _, of := range []struct {
		pace *auth.Pace
		name string
	}{{s.each, user}, {s.all, ""}} {
		for {
			ok, later := of.pace.TakeMany(of.name, float64(cost), time.Now())
			if ok {
				break
			}
			if err := wait.For(ctx, later); err != nil {
				return err
			}
		}
	}
	return nil
}

// next waits until a watcher looks again: a while after something has changed, or when idle is over. It pays for that
// and for the bytes that were sent.
func (s share) next(r *http.Request, changed <-chan struct{}, idle time.Duration, sent int) error {
	late := time.NewTimer(idle)
	defer late.Stop()
	select {
	case <-r.Context().Done():
		return context.Cause(r.Context())
	case <-changed:
		if err := wait.For(r.Context(), burst/2+rand.N(burst)); err != nil {
			return err
		}
	case <-late.C:
	}
	return s.pay(r.Context(), auth.CallerOf(r).User, wakeCost+sent)
}

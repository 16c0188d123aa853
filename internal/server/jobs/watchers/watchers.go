// Package watchers shares the server's time among those who watch jobs and read their output.
package watchers

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"scrimp/internal/lib/wait"
	"scrimp/internal/server/auth"
)

// Watchers share the server's time. The cost of each is counted in bytes. A user may use shareRate over all its
// streams, and all users together four times as much. So a thousand watchers use a part of one processor, and a user
// with one stream does not wait for a user with a hundred.
const (
	shareRate = 8 << 20 // bytes per second
	shareFull = 2 << 20
	allShare  = 4

	WakeCost = 4 << 10  // a check for news and the write of it
	PageCost = 16 << 10 // reading which jobs a page of events concerns
	LogPart  = 16       // output of programs is sent as stored, so only one byte in so many counts
)

// burst is about how long changes gather before a watcher looks; it varies, so that a thousand watchers do not look
// at once.
const burst = 100 * time.Millisecond

// Share limits the server's time for watchers.
type Share struct{ each, all *auth.Pace }

// New returns a Share that nobody has used.
func New() Share {
	each := auth.NewBurst(shareRate, shareFull)
	return Share{each, each.Times(allShare)}
}

// Pay waits until the caller's user may use that much. It fails if the caller has left.
func (s Share) Pay(ctx context.Context, user string, cost int) error {
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

// Next waits until a watcher should look again: shortly after a change, or after idle. It pays for that and for the
// bytes sent.
func (s Share) Next(r *http.Request, changed <-chan struct{}, idle time.Duration, sent int) error {
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
	return s.Pay(r.Context(), auth.CallerOf(r).User, WakeCost+sent)
}

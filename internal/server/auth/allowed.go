package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of answers without an end.
const (
	userStreams  = 100  // that one user may follow at once, with whatever tokens
	allStreams   = 2000 // and all together
	userArchives = 8    // tar files that are on their way to one user: each takes a processor to compress
	allArchives  = 64
)

// errRevoked is why a stream ends whose reader may not see what it shows any more.
var errRevoked = errors.New("the token or the roles of the user have changed")

// whileAllowed is the request's context until its token expires or is revoked, or
// the roles of its user change: who comes again gets what is theirs then. The
// caller calls done.
func (g *Gate) whileAllowed(r *http.Request) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	c := CallerOf(r)
	if c.Token == "" { // who holds the data folder
		return ctx, func() { cancel(nil) }
	}
	token := bearerToken(r)
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			is, left, changed, err := g.People.standing(token, c.Token)
			if err != nil || !slices.Equal(is.Grants, c.Grants) {
				cancel(errRevoked)
				return
			}
			expiry := time.NewTimer(left)
			select {
			case <-ctx.Done():
			case <-changed:
			case <-expiry.C:
			}
			expiry.Stop()
			if ctx.Err() != nil {
				return
			}
		}
	})
	return ctx, func() {
		cancel(nil)
		watch.Wait()
	}
}

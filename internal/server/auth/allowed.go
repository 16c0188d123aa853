package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"scrimp/internal/decide/core"
)

// Limits on streams.
const (
	userStreams  = 100  // of one user at once, over all tokens
	allStreams   = 2000 // of all users
	userArchives = 8    // tar files in transfer to one user: each takes a processor to compress
	allArchives  = 64
)

// errRevoked ends a stream whose reader may no longer see its contents.
var errRevoked = errors.New("the token or the roles of the user have changed")

// authorizedContext returns the request's context, which it cancels when the token expires or is revoked or when the
// user's roles change. A client that reconnects gets what its rights allow then. The caller calls done.
func (g *Gate) authorizedContext(r *http.Request) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	c := CallerOf(r)
	if c.Token == "" { // the owner of the data folder
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

// ownerOf returns the team and the user of a job or a group, which never change.
func (g *Gate) ownerOf(id string) (team, user string, known bool, err error) {
	known, err = g.Control.Visible(id, func(j *core.Job) { team, user = j.Terms().Owner.Team, j.User() })
	if !known && err == nil {
		team, user, known, err = g.ownerOfGroup(id)
	}
	return team, user, known, err
}

// ownerOfGroup returns the owner of a group. Groups and jobs share one namespace.
func (g *Gate) ownerOfGroup(id string) (team, user string, known bool, err error) {
	g.Control.ReadUncommitted(func(m *core.Machine) {
		if of := m.State().Group(id); of != nil {
			team, user, known = of.Terms.Owner.Team, of.User(), true
		}
	})
	if known {
		return team, user, true, nil
	}
	found, err := g.Control.FindGroups(context.Background(), id)
	of, known := found[id]
	return of.Team, of.User, known, err
}

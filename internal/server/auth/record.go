package auth

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/server/reply"
	"scrimp/internal/store"
	"scrimp/internal/wire/bound"
)

// What stands in the log for ever and changes nothing: refusals, failures, and acts that are no event of
// their own. Each could else be sent without end, so the first of a kind in an hour is on record, and
// one user has so many together.
const (
	recordOnce  = time.Hour
	recordBurst = 60
	recordRate  = 60 / 3600.0 // a second
	tellEvery   = time.Minute // how often refusals are a line of the server's log at most
	mostKinds   = 10_000      // that are remembered
)

// Refusals counts requests that were refused or failed.
type Refusals struct {
	log   *slog.Logger
	count func(user string)
	pace  *Pace

	mu       sync.Mutex
	recorded map[kindOfAct]time.Time
	told     time.Time // zero: never
	more     int       // since then
}

// kindOfAct is what is on record once an hour.
type kindOfAct struct {
	user, route string
	code        int
}

// NewRefusals counts by user, and tells the log of them now and then.
func NewRefusals(log *slog.Logger, count func(user string)) *Refusals {
	return &Refusals{log: log, count: count, pace: NewBurst(recordRate, recordBurst), recorded: map[kindOfAct]time.Time{}}
}

// refused notes a refusal, and reports whether it is put on record where it may be.
func (f *Refusals) refused(user, route string, code int, may bool, now time.Time) bool {
	f.count(user)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.more++; f.told.IsZero() || now.Sub(f.told) >= tellEvery {
		f.log.Warn("requests were refused", "count", f.more, "last_user", user, "last_route", route, "last_status", code)
		f.told, f.more = now, 0
	}
	if !may {
		return false
	}
	kind := kindOfAct{user, route, code}
	if at, known := f.recorded[kind]; known && now.Sub(at) < recordOnce {
		return false
	}
	if len(f.recorded) >= mostKinds {
		clear(f.recorded)
	}
	ok := f.acts(user, now)
	if ok {
		f.recorded[kind] = now
	}
	return ok
}

// acts reports whether what a user did, and is no event, is put on record.
func (f *Refusals) acts(user string, now time.Time) bool {
	ok, _ := f.pace.take(user, now)
	return ok
}

// audit puts on record what its handler did not: what was refused, and what
// changed something that is no event. What only reads leaves no trace, but for refusals.
func (g *Gate) audit(r *http.Request, a Access, w *reply.Writer) {
	c := CallOf(r)
	code, title := w.Said()
	outcome := "done"
	switch {
	case code >= 500:
		outcome = "failed"
	case code >= 400:
		outcome = "refused"
	}
	record := !c.Written && (!a.Reads || code == http.StatusForbidden)
	switch user, now := c.Caller.User, time.Now(); {
	case code >= 400:
		record = g.Refusals.refused(user, a.Route, code, record, now)
		c.Act.Detail = cmp.Or(bound.Cut(title, 200), http.StatusText(code))
	case record:
		record = g.Refusals.acts(user, now)
	}
	if !record {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
	defer cancel()
	if err := g.Control.Propose(ctx, g.acted(c.Act, outcome)); err != nil && ctx.Err() == nil &&
		!errors.Is(err, control.ErrStopping) && !errors.Is(err, store.ErrFull) {
		g.Log.Error("act not put on record", "who", c.Act.Who, "route", c.Act.Route, "error", err)
	}
}

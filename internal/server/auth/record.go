package auth

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/reply"
	"scrimp/internal/store"
	"scrimp/internal/wire/limits"
)

// Limits on acts in the log that are not events: refusals, failures, and acts without an event of their own. They
// stay in the log for ever, and a client could send them without end. So the log records the first of a kind in an
// hour, and a user has a rate limit for all kinds together.
const (
	recordOnce  = time.Hour
	recordBurst = 60
	recordRate  = 60 / 3600.0 // per second
	tellEvery   = time.Minute // lowest interval between lines about refusals in the server's log
	mostKinds   = 10_000      // kinds remembered
)

// Refusals counts refused and failed requests.
type Refusals struct {
	log   *slog.Logger
	count func(user string)
	pace  *Pace

	mu       sync.Mutex
	recorded map[kindOfAct]time.Time
	told     time.Time // zero: never
	more     int       // refusals since then
}

// kindOfAct identifies acts that the log records once an hour.
type kindOfAct struct {
	user, route string
	code        int
}

// NewRefusals returns a counter. It calls count for each refusal, and now and then writes a line to log.
func NewRefusals(log *slog.Logger, count func(user string)) *Refusals {
	return &Refusals{log: log, count: count, pace: NewBurst(recordRate, recordBurst), recorded: map[kindOfAct]time.Time{}}
}

// refused counts a refusal, and reports whether the audit trail records it; may is false for refusals that it never
// records.
func (f *Refusals) refused(user, route string, code int, may bool, now time.Time) bool {
	f.count(user)
	return f.first(user, route, code, may, now)
}

// first reports whether the audit trail records a refusal: the first of its kind in an hour.
func (f *Refusals) first(user, route string, code int, may bool, now time.Time) bool {
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

// acts reports whether the user's rate limit lets the log record an act without an event.
func (f *Refusals) acts(user string, now time.Time) bool {
	ok, _ := f.pace.take(user, now)
	return ok
}

// audit records what the handler did not: refusals, and changes without an event of their own. Of reads it records
// only refusals.
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
		if a.ofUsers() && code != http.StatusForbidden {
			title = "" // it may name a person
		}
		c.Act.Detail = cmp.Or(limits.Cut(title, 200), http.StatusText(code))
	case record:
		record = g.Refusals.acts(user, now)
	}
	if !record {
		return
	}
	g.record(r, c.Act, outcome)
}

// Unknown is who acts in the audit trail if nobody knows. It is not a name of a user.
const Unknown = "(unknown)"

// RecordStranger records that the server refuses somebody who has no token, such as a person who signs in. who is
// Unknown if empty. title is what the person reads; it must have no secret. The audit trail gets the first refusal of
// an address and reason in an hour, and of all addresses together as many as of one user.
func (g *Gate) RecordStranger(r *http.Request, who string, code int, title string) {
	reason, _, _ := strings.Cut(title, `: "`) // what follows is the stranger's choice
	now := time.Now()
	g.Refusals.count(Unknown) // one label of the metric for all addresses
	if !g.Refusals.first(sourceOf(r), r.Pattern+" "+reason, code, true, now) || !g.Refusals.acts("sign-ins", now) {
		return
	}
	outcome := "refused"
	if code >= http.StatusInternalServerError {
		outcome = "failed"
	}
	g.record(r, identity.Act{Who: cmp.Or(who, Unknown), From: From(r), Route: r.Pattern, Detail: limits.Cut(title, 200)},
		outcome)
}

// record writes an act to the log.
func (g *Gate) record(r *http.Request, act identity.Act, outcome string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
	defer cancel()
	if err := g.Control.Propose(ctx, g.acted(act, outcome)); err != nil && ctx.Err() == nil &&
		!errors.Is(err, control.ErrStopping) && !errors.Is(err, store.ErrFull) {
		g.Log.Error("cannot record an act", "who", act.Who, "route", act.Route, "error", err)
	}
}

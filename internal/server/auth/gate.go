// Package auth says who asks: users by their tokens, agents by their tickets, machines by their
// signatures. It lets in who may, at their pace, and puts on record what they did.
package auth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/api/signed"
	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/server/reply"
	"scrimp/internal/store"
)

// Gate is the one way to a handler.
type Gate struct {
	Owner   string // token of who holds the data folder, good on its socket only
	Tickets Tickets
	People  *People
	Pace    *Pace
	Control *control.Control
	Log     *slog.Logger
	Asked   func()      // is told of each request of a user
	Seen    signed.Seen // what machines have signed

	streams Streams
}

// lost reports whether a write to the log has failed.
func (g *Gate) lost() bool { return g.Control != nil && g.Control.Lost() }

// who returns the caller of a request. The data folder's own token is good on its socket only.
func (g *Gate) who(r *http.Request) (identity.Caller, error) {
	token := bearerToken(r)
	if BySocket(r) && subtle.ConstantTimeCompare([]byte(token), []byte(g.Owner)) == 1 {
		return identity.Owner(OwnerName), nil
	}
	return g.People.who(token)
}

// slower answers a caller who asks too often.
func slower(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	reply.Problem(w, http.StatusTooManyRequests, "too many requests",
		"wait as long as Retry-After says; watch a job instead of asking for it", nil)
}

// Serve lets requests through to what a route does: it finds out who asks, whether they may,
// and puts on record what they did. served learns what was answered.
func (g *Gate) Serve(a Access, do http.HandlerFunc, served func(code int, took time.Duration)) http.HandlerFunc {
	return func(plain http.ResponseWriter, r *http.Request) {
		w, begun := reply.NewWriter(plain, g.lost, a.Scope == Bootstraps || a.Scope == Machines), time.Now()
		defer func() { served(w.End(), time.Since(begun)) }()
		reply.Guard(w)
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = newPatientBody(plain, r, begun)
		}
		switch a.Scope {
		case Open:
			do(w, r)
		case Bootstraps, Attempts:
			if g.paced(w, g.ticketHolder(a, r)) && speaks(w, r, api.OldestWire, api.Wire) {
				do(w, r)
			}
		case Machines:
			if signed, ok := g.signedBy(w, r); ok && speaks(w, r, api.OldestWire, api.Wire) {
				do(w, signed)
			}
		case Anywhere, Everywhere, OfJob:
			g.serveUser(a, w, r, do)
		}
	}
}

// ticketHolder is whose pace an agent has: a token that somebody made up counts for who sends it,
// else each would have a pace of its own.
func (g *Gate) ticketHolder(a Access, r *http.Request) string {
	if _, ok := g.Tickets.Shown(r, ticketFor(a.Scope)); ok {
		return "agent " + bearerToken(r)
	}
	return "from " + From(r)
}

// paced answers whoever asks too often.
func (g *Gate) paced(w http.ResponseWriter, name string) bool {
	ok, wait := g.Pace.take(name, time.Now())
	if !ok {
		slower(w, wait)
	}
	return ok
}

// serveUser serves who has a token of their own.
func (g *Gate) serveUser(a Access, w *reply.Writer, r *http.Request, do http.HandlerFunc) {
	caller, err := g.who(r)
	name := "token " + caller.Token
	if err != nil {
		name = "from " + From(r)
	}
	if !g.paced(w, name) {
		return
	}
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		reply.Problem(w, http.StatusUnauthorized, "no valid token",
			"scrimp login ADDRESS keeps one; an admin makes it with scrimp tokens new USER", nil)
		return
	}
	g.Asked()
	c := &Call{Caller: caller, Act: identity.Act{Who: caller.User, Token: caller.Token, From: From(r),
		Route: a.Route, Object: r.PathValue("id")}}
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	if g.may(w, r, a) {
		g.streamed(a, w, r, name, do)
	}
	g.audit(r, a, w)
}

// streamed does what the route does. Answers without an end are counted.
func (g *Gate) streamed(a Access, w http.ResponseWriter, r *http.Request, name string, do http.HandlerFunc) {
	if a.Stream {
		end, err := g.streams.Open(name, tokenStreams, allStreams)
		if err != nil {
			w.Header().Set("Retry-After", "10")
			reply.Problem(w, http.StatusTooManyRequests, "too many streams are open",
				"close some of them: one stream of GET /v1/events shows all jobs", err)
			return
		}
		defer end()
		ctx, left := g.whileAllowed(r)
		defer left()
		r = r.WithContext(ctx)
	}
	do(w, r)
}

// speaks answers an agent whose protocol this server does not speak.
func speaks(w http.ResponseWriter, r *http.Request, oldest, newest int) bool {
	w.Header().Set(api.WireHeader, strconv.Itoa(newest))
	text, version := r.Header.Get(api.WireHeader), 1
	if text != "" {
		var err error
		if version, err = strconv.Atoi(text); err != nil || version < 1 {
			reply.FieldProblem(w, http.StatusBadRequest, api.WireHeader,
				"the version of the protocol is not a number from 1 on", "start the agent that the server gives to its machines",
				nil)
			return false
		}
	}
	has := fmt.Sprintf("the agent speaks version %d of the protocol, this server %d to %d", version, oldest, newest)
	switch {
	case version < oldest:
		reply.Problem(w, http.StatusUpgradeRequired, "the agent is too old for this server",
			"give the machine back: the next one starts with the server's own agent", errors.New(has))
	case version > newest:
		reply.Problem(w, http.StatusUpgradeRequired, "the agent is newer than this server",
			"bring the server up to date, or give the machine back", errors.New(has))
	default:
		return true
	}
	return false
}

// may answers a caller who lacks the role that the route asks for.
func (g *Gate) may(w http.ResponseWriter, r *http.Request, a Access) bool {
	caller := CallerOf(r)
	has := caller.Best()
	switch a.Scope {
	case Everywhere:
		has = caller.Role(identity.Everywhere)
	case OfJob:
		id := r.PathValue("id")
		team := ""
		// the team never changes
		known, err := g.Control.Visible(id, func(j *core.Job) { team = j.Terms().Owner.Team })
		if err != nil {
			w.Header().Set("Retry-After", "10")
			reply.Problem(w, http.StatusServiceUnavailable, "archived jobs cannot be read now", "ask again in a minute", err)
			return false
		}
		if has = caller.Role(team); !known || has < identity.Viewer { // whose job it is is nobody else's business
			reply.UnknownJob(w, "", id)
			return false
		}
	case Open, Bootstraps, Attempts, Machines, Anywhere:
	}
	if has >= a.Role {
		return true
	}
	wants, who := a.Role.String(), caller.User
	if a.Scope == Everywhere {
		wants += " of all teams"
	}
	fix := "an admin grants it with scrimp users set " + caller.User
	if caller.Most != identity.Nobody && caller.Most < a.Role {
		who, fix = "this token of "+who, "make one that is not cut to "+caller.Most.String()+", with scrimp tokens new"
	}
	reply.Problem(w, http.StatusForbidden, fmt.Sprintf("this needs the role %s, and %s has %v", wants, who, has), fix, nil)
	return false
}

// Attempt returns the attempt whose agent asks, or answers that it may not.
func (g *Gate) Attempt(w http.ResponseWriter, r *http.Request) (string, bool) {
	attempt, ok := g.Tickets.Shown(r, AttemptTicket)
	switch {
	case !ok:
		reply.Problem(w, http.StatusUnauthorized, "no valid token", "register the machine and pull its tasks first", nil)
		return "", false
	case !g.Control.Live(attempt):
		reply.Problem(w, http.StatusGone, "the attempt is over, and its token with it", "switch the machine off", nil)
		return "", false
	}
	return attempt, true
}

// Propose hands events to the core with the act that caused them, in one
// transaction: what is done is on record, and what is not is not.
func (g *Gate) Propose(r *http.Request, object string, events ...core.Event) error {
	return g.ProposeWith(r, object, CallOf(r).Act.Detail, events...)
}

// ProposeWith is Propose with what is to be read of the act besides.
func (g *Gate) ProposeWith(r *http.Request, object, detail string, events ...core.Event) error {
	c := CallOf(r)
	act := c.Act
	act.Object, act.Detail = object, detail
	err := g.Control.Propose(r.Context(), append(events, g.acted(act, "done"))...)
	if c.Written = err == nil; c.Written {
		c.Act = act
	}
	return err
}

func (g *Gate) acted(a identity.Act, outcome string) core.Event {
	a.At, a.Outcome = time.Now().UTC(), outcome
	return core.Event{At: g.Control.Now(), Schema: core.Schema, Tenant: g.Control.Tenant(), Actor: Actor(a.Who),
		Body: core.Audited{Act: a}}
}

// Event is one of now that the caller has caused.
func (g *Gate) Event(r *http.Request, b core.Body) core.Event {
	return core.Event{At: g.Control.Now(), Schema: core.Schema, Tenant: g.Control.Tenant(),
		Actor: Actor(CallerOf(r).User), Body: b}
}

// audit puts on record what its handler did not: what was refused, and what
// changed something that is no event. What only reads leaves no trace, but for refusals.
func (g *Gate) audit(r *http.Request, a Access, w *reply.Writer) {
	c := CallOf(r)
	code, title := w.Said()
	if c.Written || a.Reads && code != http.StatusForbidden {
		return
	}
	outcome := "done"
	switch {
	case code >= 500:
		outcome = "failed"
	case code >= 400:
		outcome = "refused"
	}
	if code >= 400 {
		c.Act.Detail = cmp.Or(title[:min(len(title), 200)], http.StatusText(code))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
	defer cancel()
	if err := g.Control.Propose(ctx, g.acted(c.Act, outcome)); err != nil && ctx.Err() == nil &&
		!errors.Is(err, control.ErrStopping) && !errors.Is(err, store.ErrFull) {
		g.Log.Error("act not put on record", "who", c.Act.Who, "route", c.Act.Route, "error", err)
	}
}

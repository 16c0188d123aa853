// Package auth authenticates callers: users by their tokens, agents by their tickets, machines by their signatures.
// It authorizes requests, limits their rate and writes the audit trail.
package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
	"scrimp/internal/wire/limits"
)

// Gate wraps every handler.
type Gate struct {
	Owner   string // token of the data folder's owner, valid on its socket only
	Dir     string // the data folder
	Tickets Tickets
	People  *People
	Pace    *Pace
	Control *control.Control
	Log     *slog.Logger
	Asked   func()       // called on each request of a user
	Seen    httpsig.Seen // recent signatures of machines, against replay
	// Admits reports whether a token belongs to a machine that joins, and the machine's name; nil: no such machines.
	Admits func(token string) (name string, ok bool)
	Limits
}

// Limits bounds the use of the server by each caller and by all together.
type Limits struct {
	UserBodies, AgentBodies *Bodies
	AllPace, StrangersPace  *Pace // of all users, and of all callers without a valid token
	Refusals                *Refusals

	streams, archives Streams
	reads             Reads
}

// NewLimits returns the limits of a server whose callers each have the given rate limit.
func NewLimits(each *Pace, log *slog.Logger, count func(user string)) Limits {
	return Limits{UserBodies: NewBodies(userBodies), AgentBodies: NewBodies(agentBodies),
		AllPace: each.Times(allPace), StrangersPace: each.Times(strangersPace), Refusals: NewRefusals(log, count)}
}

// The rates for all callers together, as multiples of one caller's rate.
const (
	allPace       = 20
	strangersPace = 4
)

// lost reports whether a write to the log has failed.
func (g *Gate) lost() bool { return g.Control != nil && g.Control.Lost() }

// who returns the caller of a request. The data folder's own token is valid on its socket only.
func (g *Gate) who(r *http.Request) (identity.Caller, error) {
	token := bearerToken(r)
	if BySocket(r) && subtle.ConstantTimeCompare([]byte(token), []byte(g.Owner)) == 1 {
		return identity.Owner(OwnerName), nil
	}
	return g.People.who(token)
}

// slower answers a user who sends too many requests.
func slower(w http.ResponseWriter, wait time.Duration) {
	Slower(w, wait, "watch a job instead of asking for it")
}

// Slower answers a caller who does something too often, and says what to do instead.
func Slower(w http.ResponseWriter, wait time.Duration, instead string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	reply.Problem(w, http.StatusTooManyRequests, "too many requests", "wait as long as Retry-After says; "+instead, nil)
}

// Allowed applies the caller's rate limit, and reports whether the request may go on. If not, it answers with what to
// do instead.
func Allowed(w http.ResponseWriter, r *http.Request, pace *Pace, instead string) bool {
	ok, wait := pace.TakeMany(CallerOf(r).User, 1, time.Now())
	if !ok {
		Slower(w, wait, instead)
	}
	return ok
}

// Serve returns the handler of a route: it authenticates the caller, checks access, runs do and writes the audit
// log. It reports the status and duration to served.
func (g *Gate) Serve(a Access, do http.HandlerFunc, served func(code int, took time.Duration)) http.HandlerFunc {
	return func(plain http.ResponseWriter, r *http.Request) {
		w, begun := reply.NewWriter(plain, g.lost, a.Scope == Bootstraps || a.Scope == Machines), time.Now()
		w.Hide = g.Dir
		defer func() {
			if err := w.Fault(); err != nil {
				g.Refusals.log.Error("a response cannot be written as JSON", "route", a.Route, "error", err)
			}
			served(w.End(), time.Since(begun))
		}()
		reply.Guard(w)
		if r.Body != nil && r.Body != http.NoBody {
			body := newPatientBody(plain, r, begun)
			defer body.release()
			r.Body = body
		}
		switch a.Scope {
		case Open:
			g.serveOpen(a, w, r, do)
		case Bootstraps, Attempts:
			name, known := g.ticketHolder(a, r)
			attribute(r, g.AgentBodies, name)
			if g.allow(w, name, known) && checkVersion(w, r, api.OldestWire, api.Wire) {
				do(w, r)
			}
		case Machines:
			if signed, ok := g.signedBy(w, r); ok && checkVersion(w, r, api.OldestWire, api.Wire) {
				do(w, signed)
			}
		case Joiners:
			g.serveJoiner(w, r, do)
		case AnyTeam, AllTeams, OfJob, OfOwnJob:
			g.serveUser(a, w, r, do)
		}
	}
}

// serveOpen serves a request that needs no credentials, at the pace of its address.
func (g *Gate) serveOpen(a Access, w *reply.Writer, r *http.Request, do http.HandlerFunc) {
	w.Names = g.Names
	attribute(r, g.AgentBodies, "from "+sourceOf(r))
	name := sourceOf(r)
	if a.Probe {
		name = "probe " + name
	}
	if g.allow(w, name, a.Probe) {
		do(w, r)
	}
}

// serveJoiner serves a machine that joins. A caller with any other token shares the rate limit of strangers.
func (g *Gate) serveJoiner(w *reply.Writer, r *http.Request, do http.HandlerFunc) {
	name, known := "", false
	if g.Admits != nil {
		name, known = g.Admits(bearerToken(r))
	}
	if known {
		name = "joins " + name
	} else {
		name = sourceOf(r)
	}
	switch {
	case !g.allow(w, name, known):
	case known:
		do(w, r)
	default:
		reply.Problem(w, http.StatusUnauthorized, "no valid token of a machine",
			"scrimp engine token ENGINE MACHINE makes one; an engine that was added counts once the server restarts", nil)
	}
}

// ticketHolder returns the key for an agent's rate limit. A request with a made-up token counts for its source
// address, otherwise each made-up token would have a rate limit of its own.
func (g *Gate) ticketHolder(a Access, r *http.Request) (name string, known bool) {
	if _, ok := g.Tickets.Shown(r, purposeOf(a.Scope)); ok {
		return "agent " + bearerToken(r), true
	}
	return sourceOf(r), false
}

// allow applies the rate limit, and reports whether the request may go on. Unknown callers also share one limit.
func (g *Gate) allow(w http.ResponseWriter, name string, known bool) bool {
	ok, wait := g.Pace.take(name, time.Now())
	if ok && !known && g.StrangersPace != nil {
		ok, wait = g.StrangersPace.take("", time.Now())
	}
	if !ok {
		slower(w, wait)
	}
	return ok
}

// allowUser applies the rate limit of a user, over all its tokens, and the limit of all users.
func (g *Gate) allowUser(w http.ResponseWriter, name string) bool {
	ok, wait := g.Pace.take(name, time.Now())
	if ok {
		ok, wait = g.AllPace.take("", time.Now())
	}
	if !ok {
		slower(w, wait)
	}
	return ok
}

// longestObject bounds the object of an act in the audit trail, in bytes.
const longestObject = 255

// serveUser serves a caller who has a token of their own.
func (g *Gate) serveUser(a Access, w *reply.Writer, r *http.Request, do http.HandlerFunc) {
	w.Names = g.Names
	caller, err := g.who(r)
	name := "user " + caller.User
	if err != nil {
		if !g.allow(w, sourceOf(r), false) {
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		reply.Problem(w, http.StatusUnauthorized, "no valid token",
			"scrimp login ADDRESS keeps one; an admin makes it with scrimp tokens new USER", nil)
		return
	}
	if !g.allowUser(w, name) {
		g.Refusals.refused(caller.User, a.Route, http.StatusTooManyRequests, false, time.Now())
		return
	}
	g.Asked()
	attribute(r, g.UserBodies, name)
	c := &Call{Caller: caller, Act: identity.Act{Who: caller.User, Token: caller.Token, From: From(r),
		Route: a.Route, Object: limits.Cut(g.objectOf(a, r), longestObject)}}
	r = g.named(r)
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	if g.authorize(w, r, a) {
		g.serveLimited(a, w, r, name, do)
	}
	g.audit(r, a, w)
}

// serveLimited runs the handler. It limits the number of open streams; other reads wait for their turn.
func (g *Gate) serveLimited(a Access, w http.ResponseWriter, r *http.Request, name string, do http.HandlerFunc) {
	if a.Stream {
		open := func() (func(), error) { return g.streams.Open(name, userStreams, allStreams) }
		if a.Archive {
			open = func() (func(), error) { return g.archives.Open(name, userArchives, allArchives) }
		}
		end, err := open()
		if err != nil {
			w.Header().Set("Retry-After", "10")
			reply.Problem(w, http.StatusTooManyRequests, "too many streams are open",
				"close some of them: one stream of GET /v1/events shows all jobs", err)
			return
		}
		defer end()
		ctx, left := g.authorizedContext(r)
		defer left()
		r = r.WithContext(ctx)
	} else if r.Method == http.MethodGet {
		done, err := g.reads.Take(r.Context(), name)
		if err != nil {
			w.Header().Set("Retry-After", "1")
			reply.Problem(w, http.StatusTooManyRequests, "too many requests at once",
				"send one request after the other", err)
			return
		}
		defer done()
	}
	do(w, r)
}

// checkVersion reports whether the server speaks the agent's protocol version, and answers the agent if not.
func checkVersion(w http.ResponseWriter, r *http.Request, oldest, newest int) bool {
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

// authorize reports whether the caller has the role that the route requires, and answers the caller if not.
func (g *Gate) authorize(w http.ResponseWriter, r *http.Request, a Access) bool {
	caller := CallerOf(r)
	has, of := caller.Best(), ""
	switch a.Scope {
	case AllTeams:
		has = caller.Role(identity.Everywhere)
	case OfJob, OfOwnJob:
		id := r.PathValue("id")
		team, user, known, err := g.ownerOf(id)
		if err != nil {
			w.Header().Set("Retry-After", "10")
			reply.Problem(w, http.StatusServiceUnavailable, "archived jobs cannot be read now", "ask again in a minute", err)
			return false
		}
		if has = caller.Role(team); !known || has < identity.Viewer { // do not reveal that another team's job exists
			reply.UnknownJob(w, "", id)
			return false
		}
		if a.Scope == OfOwnJob && user != caller.User {
			a.Role, of = max(a.Role, identity.Operator), " in a job of "+user
		}
	case Open, Bootstraps, Attempts, Machines, Joiners, AnyTeam:
	}
	if has >= a.Role {
		return true
	}
	wants, who := a.Role.String()+of, caller.User
	if a.Scope == AllTeams {
		wants += " of all teams"
	}
	fix := "an admin grants it with scrimp users set " + caller.User
	if of != "" {
		fix = "ask them, or an operator of the team"
	}
	if caller.Most != identity.Nobody && caller.Most < a.Role {
		who, fix = "this token of "+who, "make one that is not cut to "+caller.Most.String()+", with scrimp tokens new"
	}
	reply.Problem(w, http.StatusForbidden, fmt.Sprintf("this needs the role %s, and %s has %v", wants, who, has), fix, nil)
	return false
}

// Attempt returns the attempt of the requesting agent and the rank of its machine, or answers that the token is not
// valid.
func (g *Gate) Attempt(w http.ResponseWriter, r *http.Request) (attempt string, node int, ok bool) {
	rank, ok := g.Tickets.Shown(r, AttemptTicket)
	attempt, node, named := api.ParseRank(rank)
	switch {
	case !ok || !named:
		reply.Problem(w, http.StatusUnauthorized, "no valid token", "register the machine and pull its tasks first", nil)
		return "", 0, false
	case !g.Control.Live(attempt):
		reply.Problem(w, http.StatusGone, "the attempt is over, and its token with it", "switch the machine off", nil)
		return "", 0, false
	}
	return attempt, node, true
}

// Propose passes events to the core in one transaction with the act that caused them: the log has both or neither.
func (g *Gate) Propose(r *http.Request, object string, events ...core.Event) error {
	return g.ProposeWith(r, object, CallOf(r).Act.Detail, events...)
}

// ProposeWith is Propose with a detail for the audit trail.
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

// Event returns an event with the current time that the caller has caused.
func (g *Gate) Event(r *http.Request, b core.Body) core.Event {
	return core.Event{At: g.Control.Now(), Schema: core.Schema, Tenant: g.Control.Tenant(),
		Actor: Actor(CallerOf(r).User), Body: b}
}

package server

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/subtle"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/store"
)

// ownerName is what the audit trail calls who holds the data folder.
const ownerName = "owner"

// bearerToken is what the request shows.
func bearerToken(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// bearer returns the attempt that the request's token is for.
func (s *Server) bearer(r *http.Request, what string) (attempt string, ok bool) {
	token := bearerToken(r)
	rest, ok := strings.CutPrefix(token, what+".")
	if !ok {
		return "", false
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot < 0 {
		return "", false
	}
	attempt = rest[:dot]
	return attempt, hmac.Equal([]byte(token), []byte(s.ticket(what, attempt)))
}

// ticketFor is what an agent's token is for.
func ticketFor(k scope) string {
	if k == bootstraps {
		return "bootstrap"
	}
	return "attempt"
}

// who returns the caller of a request. The data folder's own token is good on its socket only.
func (s *Server) who(r *http.Request) (identity.Caller, error) {
	token := bearerToken(r)
	if bySocket(r) && subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1 {
		return identity.Owner(ownerName), nil
	}
	s.people.RLock()
	defer s.people.RUnlock()
	return s.book.Who(token, time.Now())
}

// call is what is known of a request while it is served.
type call struct {
	caller  identity.Caller
	act     identity.Act
	written bool // the act is on record
}

type callKey struct{}

func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call)
	if c == nil {
		c = &call{}
	}
	return c
}

func callerOf(r *http.Request) identity.Caller { return callOf(r).caller }

// guard sets what keeps a browser from taking an answer for a page.
func guard(w http.ResponseWriter) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
}

// slower answers a caller who asks too often.
func slower(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	problem(w, http.StatusTooManyRequests, "too many requests",
		"wait as long as Retry-After says; watch a job instead of asking for it", nil)
}

func from(r *http.Request) string {
	if bySocket(r) {
		return "socket"
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// serve is the one way to a handler: it finds out who asks, whether they may,
// and puts on record what they did.
func (s *Server) serve(t route) http.HandlerFunc {
	return func(plain http.ResponseWriter, r *http.Request) {
		dated := t.Scope == bootstraps || t.Scope == machines
		w, begun := &status{ResponseWriter: plain, lost: s.lost, dated: dated}, time.Now()
		defer func() {
			if w.code == 0 { // an answer without a body says something too
				w.keepsBack(http.StatusOK)
			}
			s.metrics.served(t, w.code, time.Since(begun))
		}()
		guard(w)
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = newPatientBody(plain, r, begun)
		}
		switch t.Scope {
		case open:
			t.do(s, w, r)
			return
		case bootstraps, attempts:
			// a token that somebody made up counts for who sends it: else each would have a pace of its own
			name := "from " + from(r)
			if _, ok := s.bearer(r, ticketFor(t.Scope)); ok {
				name = "agent " + bearerToken(r)
			}
			if ok, wait := s.pace.take(name, time.Now()); !ok {
				slower(w, wait)
				return
			}
			if speaks(w, r, api.OldestWire, api.Wire) {
				t.do(s, w, r)
			}
			return
		case machines:
			if signed, ok := s.signedBy(w, r); ok && speaks(w, r, api.OldestWire, api.Wire) {
				t.do(s, w, signed)
			}
			return
		case anywhere, everywhere, ofJob:
		}
		caller, err := s.who(r)
		name := "token " + caller.Token
		if err != nil {
			name = "from " + from(r)
		}
		if ok, wait := s.pace.take(name, time.Now()); !ok {
			slower(w, wait)
			return
		}
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			problem(w, http.StatusUnauthorized, "no valid token",
				"scrimp login ADDRESS keeps one; an admin makes it with scrimp tokens new USER", nil)
			return
		}
		s.mu.Lock()
		s.asked = time.Now()
		s.mu.Unlock()
		c := &call{caller: caller, act: identity.Act{Who: caller.User, Token: caller.Token, From: from(r),
			Route: r.Method + " " + t.Path, Object: r.PathValue("id")}}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		if s.may(w, r, t) {
			s.streamed(t, w, r, name)
		}
		s.audit(r, t, w)
	}
}

// streamed does what the route does. Answers without an end are counted.
func (s *Server) streamed(t route, w http.ResponseWriter, r *http.Request, name string) {
	if t.Stream != "" {
		end, err := s.streams.open(name, tokenStreams, allStreams)
		if err != nil {
			w.Header().Set("Retry-After", "10")
			problem(w, http.StatusTooManyRequests, "too many streams are open",
				"close some of them: one stream of GET /v1/events shows all jobs", err)
			return
		}
		defer end()
		ctx, left := s.whileAllowed(r)
		defer left()
		r = r.WithContext(ctx)
	}
	t.do(s, w, r)
}

// errRevoked is why a stream ends whose reader may not see what it shows any more.
var errRevoked = errors.New("the token or the roles of the user have changed")

// whileAllowed is the request's context until its token expires or is revoked, or
// the roles of its user change: who comes again gets what is theirs then. The
// caller calls done.
func (s *Server) whileAllowed(r *http.Request) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	c := callerOf(r)
	if c.Token == "" { // who holds the data folder
		return ctx, func() { cancel(nil) }
	}
	token := bearerToken(r)
	look := func() (changed <-chan struct{}, left time.Duration, ok bool) {
		s.people.RLock()
		defer s.people.RUnlock()
		now := time.Now()
		is, err := s.book.Who(token, now)
		t, _ := s.book.Token(c.Token)
		return s.revised, t.Expires.Sub(now), err == nil && slices.Equal(is.Grants, c.Grants)
	}
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			changed, left, ok := look()
			if !ok {
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

// speaks answers an agent whose protocol this server does not speak.
func speaks(w http.ResponseWriter, r *http.Request, oldest, newest int) bool {
	w.Header().Set(api.WireHeader, strconv.Itoa(newest))
	text, version := r.Header.Get(api.WireHeader), 1
	if text != "" {
		var err error
		if version, err = strconv.Atoi(text); err != nil || version < 1 {
			fieldProblem(w, http.StatusBadRequest, api.WireHeader, "the version of the protocol is not a number from 1 on",
				"start the agent that the server gives to its machines", nil)
			return false
		}
	}
	has := fmt.Sprintf("the agent speaks version %d of the protocol, this server %d to %d", version, oldest, newest)
	switch {
	case version < oldest:
		problem(w, http.StatusUpgradeRequired, "the agent is too old for this server",
			"give the machine back: the next one starts with the server's own agent", errors.New(has))
	case version > newest:
		problem(w, http.StatusUpgradeRequired, "the agent is newer than this server",
			"bring the server up to date, or give the machine back", errors.New(has))
	default:
		return true
	}
	return false
}

// may answers a caller who lacks the role that the table asks for.
func (s *Server) may(w http.ResponseWriter, r *http.Request, t route) bool {
	caller := callerOf(r)
	has := caller.Best()
	switch t.Scope {
	case everywhere:
		has = caller.Role(identity.Everywhere)
	case ofJob:
		id := r.PathValue("id")
		team, known := "", false
		s.control.ReadUpTo(func(m *core.Machine) uint64 {
			j, ok := m.Job(id)
			if !ok {
				return 0
			}
			team, known = j.Terms().Owner.Team, true
			return j.Event() // the team never changes
		})
		if has = caller.Role(team); !known || has < identity.Viewer { // whose job it is is nobody else's business
			unknownJob(w, "", id)
			return false
		}
	case open, bootstraps, attempts, machines, anywhere:
	}
	if has >= t.Role {
		return true
	}
	wants, who := t.Role.String(), caller.User
	if t.Scope == everywhere {
		wants += " of all teams"
	}
	fix := "an admin grants it with scrimp users set " + caller.User
	if caller.Most != identity.Nobody && caller.Most < t.Role {
		who, fix = "this token of "+who, "make one that is not cut to "+caller.Most.String()+", with scrimp tokens new"
	}
	problem(w, http.StatusForbidden, fmt.Sprintf("this needs the role %s, and %s has %v", wants, who, has), fix, nil)
	return false
}

// sees reports whether the caller may know of the job.
func sees(c identity.Caller, j *core.Job) bool {
	return c.Role(j.Terms().Owner.Team) >= identity.Viewer
}

// tell hands events to the core with the act that caused them, in one
// transaction: what is done is on record, and what is not is not.
func (s *Server) tell(r *http.Request, object string, events ...core.Event) error {
	c := callOf(r)
	act := c.act
	act.Object = object
	err := s.control.Propose(r.Context(), append(events, s.acted(act, "done"))...)
	if c.written = err == nil; c.written {
		c.act = act
	}
	return err
}

func (s *Server) acted(a identity.Act, outcome string) core.Event {
	a.At, a.Outcome = time.Now().UTC(), outcome
	return core.Event{At: s.control.Now(), Schema: core.Schema, Tenant: s.control.Tenant(), Actor: actor(a.Who),
		Body: core.Audited{Act: a}}
}

// actor is how events name a user.
func actor(user string) string {
	if user == ownerName {
		return "user"
	}
	return "user:" + user
}

// audit puts on record what its handler did not: what was refused, and what
// changed something that is no event. What only reads leaves no trace, but for refusals.
func (s *Server) audit(r *http.Request, t route, w *status) {
	c, code := callOf(r), w.code
	if c.written || t.Reads && code != http.StatusForbidden {
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
		c.act.Detail = cmp.Or(w.title[:min(len(w.title), 200)], http.StatusText(code))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
	defer cancel()
	if err := s.control.Propose(ctx, s.acted(c.act, outcome)); err != nil && ctx.Err() == nil &&
		!errors.Is(err, control.ErrStopping) && !errors.Is(err, store.ErrFull) {
		s.opts.Log.Error("act not put on record", "who", c.act.Who, "route", c.act.Route, "error", err)
	}
}

package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"scrimp/client"
	"scrimp/internal/api"
	"scrimp/internal/api/convert"
	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/identity"
)

// readBook makes the book of the changes in the log.
func (s *Server) readBook(ctx context.Context) error {
	kind := core.IdentityChanged{}.Kind()
	for after := uint64(0); ; {
		records, err := s.store.RecordsOf(ctx, kind, after, 1000)
		if err != nil || len(records) == 0 {
			return err
		}
		for _, r := range records {
			after = r.Seq
			e, _, err := control.Decode(r)
			if err != nil {
				return err
			}
			if b, ok := e.Body.(core.IdentityChanged); ok {
				s.book.Apply(b.Change)
			}
		}
	}
}

// change writes a change to the log and takes it into the book.
func (s *Server) change(w http.ResponseWriter, r *http.Request, object string, c identity.Change) bool {
	s.people.Lock()
	defer s.people.Unlock()
	if err := s.book.Check(c); err != nil {
		var is identity.Wrong
		if errors.As(err, &is) {
			fieldProblem(w, http.StatusUnprocessableEntity, is.Field, is.Cause, is.Fix, nil)
		} else {
			problem(w, http.StatusUnprocessableEntity, "the change is not valid",
				"send what GET /v1/openapi.json describes", err)
		}
		return false
	}
	e := core.Event{At: s.control.Now(), Schema: core.Schema, Tenant: s.control.Tenant(), Actor: actor(callerOf(r).User),
		Body: core.IdentityChanged{Change: c}}
	if err := s.tell(r, object, e); err != nil {
		problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return false
	}
	s.book.Apply(c)
	close(s.revised)
	s.revised = make(chan struct{})
	return true
}

func (s *Server) getMe(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r)
	v := api.Me{User: c.User, Grants: convert.To[[]client.Grant](c.Grants), Best: convert.To[client.Role](c.Best())}
	s.people.RLock()
	defer s.people.RUnlock()
	if t, ok := s.book.Token(c.Token); ok {
		v.Token, v.Expires = t.ID, ptr(t.Expires)
	}
	answer(w, v)
}

func (s *Server) getUsers(w http.ResponseWriter, _ *http.Request) {
	s.people.RLock()
	defer s.people.RUnlock()
	answer(w, convert.To[[]client.User](some(s.book.Users())))
}

// some is never null on the wire.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (s *Server) putUser(w http.ResponseWriter, r *http.Request) {
	b, ok := read[api.SetUser](w, r, 1<<16)
	if !ok {
		return
	}
	s.people.RLock()
	u, known := s.book.User(r.PathValue("id"))
	s.people.RUnlock()
	if !known {
		u = identity.User{Name: r.PathValue("id"), Made: time.Now().UTC()}
	}
	if b.Grants != nil {
		u.Grants = convert.To[[]identity.Grant](b.Grants)
	}
	if b.Off != nil {
		u.Off = *b.Off
	}
	u.Grants = some(u.Grants)
	if s.change(w, r, u.Name, identity.Change{User: &u}) {
		answer(w, convert.To[client.User](u))
	}
}

func (s *Server) getTeams(w http.ResponseWriter, r *http.Request) {
	s.people.RLock()
	defer s.people.RUnlock()
	list := []identity.Team{}
	for _, t := range s.book.Teams() {
		if callerOf(r).Role(t.Name) >= identity.Viewer {
			list = append(list, t)
		}
	}
	answer(w, convert.To[[]client.Team](list))
}

func (s *Server) putTeam(w http.ResponseWriter, r *http.Request) {
	b, ok := read[api.SetTeam](w, r, 1<<16)
	if !ok {
		return
	}
	t := identity.Team{Name: r.PathValue("id"), Projects: b.Projects}
	if s.change(w, r, t.Name, identity.Change{Team: &t}) {
		answer(w, convert.To[client.Team](t))
	}
}

func (s *Server) shown(t identity.Token) api.Token {
	v := api.Token{ID: t.ID, User: t.User, Most: convert.To[client.Role](t.Most), Note: t.Note, Made: t.Made,
		Expires: t.Expires, Live: t.Live(time.Now())}
	if !t.Revoked.IsZero() {
		v.Revoked = ptr(t.Revoked)
	}
	return v
}

// rules reports whether the caller may do what is for users other than itself.
func rules(c identity.Caller) bool { return c.Role(identity.Everywhere) >= identity.Admin }

func (s *Server) getTokens(w http.ResponseWriter, r *http.Request) {
	s.people.RLock()
	defer s.people.RUnlock()
	list := []api.Token{}
	for _, t := range s.book.Tokens() {
		if c := callerOf(r); rules(c) || t.User == c.User {
			list = append(list, s.shown(t))
		}
	}
	answer(w, list)
}

// standardLife is how long a token lives where nobody says.
const standardLife = 90 * 24 * time.Hour

func (s *Server) postToken(w http.ResponseWriter, r *http.Request) {
	b, ok := read[api.NewToken](w, r, 1<<16)
	if !ok {
		return
	}
	c := callerOf(r)
	if b.User == "" {
		b.User = c.User
	}
	if b.User != c.User && !rules(c) {
		problem(w, http.StatusForbidden, "a token of another user is made by an admin",
			"leave the user out for one of your own", nil)
		return
	}
	role := convert.To[identity.Role](b.Most)
	if c.Most != identity.Nobody && (role == identity.Nobody || role > c.Most) {
		role = c.Most // a token that is limited makes none that is not
	}
	life := standardLife
	if b.Life != 0 {
		life = b.Life
	}
	var chance [32]byte
	_, _ = rand.Read(chance[:]) // it never fails
	text, t := identity.Mint(chance, b.User, time.Now().UTC(), life)
	t.Most, t.Note = role, b.Note
	if s.change(w, r, t.ID+" of "+t.User, identity.Change{Token: &t}) {
		answer(w, api.MadeToken{Token: s.shown(t), Text: text})
	}
}

func (s *Server) deleteToken(w http.ResponseWriter, r *http.Request) {
	id, c := r.PathValue("id"), callerOf(r)
	s.people.RLock()
	t, known := s.book.Token(id)
	s.people.RUnlock()
	if !known || t.User != c.User && !rules(c) {
		problem(w, http.StatusNotFound, fmt.Sprintf("token %s is not known", id), "scrimp tokens lists them", nil)
		return
	}
	if s.change(w, r, t.ID+" of "+t.User, identity.Change{Revoke: id, At: ptr(time.Now().UTC())}) {
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Server) getAudit(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after, limit := uint64(0), 200
	var err error
	if text := q.Get("after"); text != "" {
		if after, err = strconv.ParseUint(text, 10, 63); err != nil {
			fieldProblem(w, http.StatusBadRequest, "after", "after is not the number of an event",
				"give next of the page before", nil)
			return
		}
	}
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 1000 {
			fieldProblem(w, http.StatusBadRequest, "limit", "limit is not a number from 1 to 1000", "leave it out for 200", nil)
			return
		}
	}
	page, err := s.acts(r.Context(), after, limit, q.Get("user"))
	if err != nil {
		problem(w, http.StatusInternalServerError, "the log was not read",
			"scrimp ledger verify says where it is broken", err)
		return
	}
	answer(w, page)
}

// actOf is a line of the audit trail as people see it.
func actOf(event uint64, a identity.Act) api.Act {
	return api.Act{Event: event, At: a.At, Who: a.Who, Token: a.Token, From: a.From, Route: a.Route, Object: a.Object,
		Outcome: a.Outcome, Detail: a.Detail}
}

// acts are a page of what was done, by one user where one is given.
func (s *Server) acts(ctx context.Context, after uint64, limit int, user string) (api.Audit, error) {
	page := api.Audit{Acts: []api.Act{}}
	for {
		records, err := s.store.RecordsOf(ctx, core.Audited{}.Kind(), after, 1000)
		if err != nil || len(records) == 0 {
			return page, err
		}
		for _, rec := range records {
			after = rec.Seq
			e, _, err := control.Decode(rec)
			if err != nil {
				return page, err
			}
			b, ok := e.Body.(core.Audited)
			if !ok || user != "" && b.Act.Who != user {
				continue
			}
			if page.Acts = append(page.Acts, actOf(rec.Seq, b.Act)); len(page.Acts) == limit {
				page.Next = rec.Seq
				return page, nil
			}
		}
	}
}

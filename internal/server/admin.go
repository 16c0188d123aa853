package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/wait"
)

const (
	adminName = "admin"
	adminNote = "of the file --admin-token" // the note of tokens that came from the file
	// adminEvery is the interval between reads of the file: a mounted Secret can change while the server runs.
	adminEvery = 10 * time.Second
)

// keepAdmin keeps the token of the user admin equal to the one in the --admin-token file, and revokes tokens
// that the file no longer holds.
func (s *Server) keepAdmin(ctx context.Context) {
	if s.opts.AdminToken == "" {
		return
	}
	select {
	case <-s.control.Begun():
	case <-ctx.Done():
		return
	}
	for told := ""; ; {
		said := ""
		if err := s.admin(ctx); err != nil && ctx.Err() == nil {
			said = err.Error()
		}
		if said != told && said != "" {
			s.opts.Log.Error("cannot apply the admin token file", "file", s.opts.AdminToken, "error", said)
		}
		told = said
		if wait.For(ctx, adminEvery) != nil {
			return
		}
	}
}

// admin applies the file to the identity book once.
func (s *Server) admin(ctx context.Context) error {
	text, err := os.ReadFile(s.opts.AdminToken)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	token, err := identity.Given(strings.TrimSpace(string(text)), adminName, now, identity.LongestLife)
	if err != nil {
		return err
	}
	token.Note = adminNote
	var user, known, live bool
	var old []string
	s.gate.People.Read(func(b *identity.Book) {
		_, user = b.User(adminName)
		var t identity.Token
		t, known = b.Token(token.ID)
		live = t.Live(now)
		for _, t := range b.Tokens() {
			if t.User == adminName && t.Note == adminNote && t.Live(now) && t.ID != token.ID {
				old = append(old, t.ID)
			}
		}
	})
	if !user { // an existing user keeps its grants
		everything := []identity.Grant{{Team: identity.Everywhere, Role: identity.Admin}}
		if err := s.changePeople(ctx, identity.Change{User: &identity.User{Name: adminName, Grants: everything,
			Made: now}}); err != nil {
			return err
		}
	}
	switch {
	case !known:
		err = s.changePeople(ctx, identity.Change{Token: &token})
	case !live:
		err = fmt.Errorf("token %s has expired or was revoked: write another one", token.ID)
	}
	for _, id := range old {
		err = errors.Join(err, s.changePeople(ctx, identity.Change{Revoke: id, At: &now}))
	}
	return err
}

// changePeople writes a change that the server makes on its own, without a request.
func (s *Server) changePeople(ctx context.Context, c identity.Change) error {
	wrong, err := s.gate.People.Change(c, func() error {
		return s.control.Propose(ctx, core.Event{At: s.control.Now(), Schema: core.Schema, Tenant: s.control.Tenant(),
			Actor: "server", Body: core.IdentityChanged{Change: c}})
	})
	return errors.Join(wrong, err)
}

package people

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

// KeepAdmin keeps the token of the user admin equal to the one in the --admin-token file, and revokes tokens
// that the file no longer holds. Without a file it does nothing.
func (d *Service) KeepAdmin(ctx context.Context, file string) {
	if file == "" {
		return
	}
	select {
	case <-d.Gate.Control.Begun():
	case <-ctx.Done():
		return
	}
	for told := ""; ; {
		said := ""
		if err := d.ReadAdmin(ctx, file); err != nil && ctx.Err() == nil {
			said = err.Error()
		}
		if said != told && said != "" {
			d.Gate.Log.Error("cannot apply the admin token file", "file", file, "error", said)
		}
		told = said
		if wait.For(ctx, adminEvery) != nil {
			return
		}
	}
}

// ReadAdmin applies the file to the identity book once.
func (d *Service) ReadAdmin(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	token, err := identity.Given(strings.TrimSpace(string(text)), adminName, now, identity.LongestLife)
	if err != nil {
		return err
	}
	token.Note = adminNote
	var known, live bool
	id, user := newID(), false
	var old []string
	d.Gate.People.Read(func(b *identity.Book) {
		if is, has := b.ID(adminName); has {
			id, user = is, true
		}
		token.User = id
		var t identity.Token
		t, known = b.Token(token.ID)
		live = t.Live(now)
		for _, t := range b.Tokens() {
			if t.User == id && t.Note == adminNote && t.Live(now) && t.ID != token.ID {
				old = append(old, t.ID)
			}
		}
	})
	if !user { // an existing user keeps its grants
		everything := []identity.Grant{{Team: identity.Everywhere, Role: identity.Admin}}
		if err := d.writeOwn(ctx, identity.Change{User: &identity.User{Name: id, Grants: everything,
			Made: now},
			Person: &identity.Person{Name: adminName}}); err != nil {
			return err
		}
	}
	switch {
	case !known:
		err = d.writeOwn(ctx, identity.Change{Token: &token})
	case !live:
		err = fmt.Errorf("token %s has expired or was revoked: write another one", token.ID)
	}
	for _, id := range old {
		err = errors.Join(err, d.writeOwn(ctx, identity.Change{Revoke: id, At: &now}))
	}
	return err
}

// writeOwn writes a change that the server makes on its own, without a request.
func (d *Service) writeOwn(ctx context.Context, c identity.Change) error {
	wrong, err := d.Gate.People.Change(c, func() error {
		log := d.Gate.Control
		return log.Propose(ctx, core.Event{At: log.Now(), Schema: core.Schema, Tenant: log.Tenant(), Actor: "server",
			Body: core.IdentityChanged{Change: c}})
	})
	return errors.Join(wrong, err)
}

package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"scrimp/internal/lib/identity"
	"scrimp/internal/store"
)

// personTime bounds a write of a person.
const personTime = 10 * time.Second

// readPersons reads the persons. It erases those whom the log no longer needs: the last server was killed between its
// write to the log and the one beside it.
func (p *People) readPersons(ctx context.Context) error {
	all, err := p.log.AllMeta(ctx)
	if err != nil {
		return err
	}
	for key, text := range all {
		id, is := strings.CutPrefix(key, store.PersonMeta)
		if !is || text == "" {
			continue
		}
		if u, known := p.book.User(id); !known || u.Erased > 0 {
			if err := p.log.PutMeta(ctx, key, ""); err != nil {
				return err
			}
			continue
		}
		var who identity.Person
		if err := json.Unmarshal([]byte(text), &who); err != nil {
			return fmt.Errorf("read the name of user %s: %w", id, err)
		}
		p.book.SetPerson(id, &who)
	}
	return nil
}

// writePerson calls write, which writes a change to the log, and writes the change's person beside it. It reports
// whether the log has the change. A new person is written first, so that no user is without a name, and an erased one
// last: the next start repeats that.
func (p *People) writePerson(c identity.Change, write func() error) (written bool, err error) {
	if c.User == nil {
		err = write()
		return err == nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), personTime)
	defer cancel()
	id := c.User.Name
	was, had := p.book.Persons()[id]
	renames := c.Person != nil && (!had || was != *c.Person)
	if renames {
		if err := p.putPerson(ctx, id, c.Person); err != nil {
			return false, err
		}
	}
	switch err := write(); {
	case err != nil && renames && had:
		_ = p.putPerson(ctx, id, &was) // the error of the log is the cause
		return false, err
	case err != nil && renames:
		_ = p.putPerson(ctx, id, nil)
		return false, err
	case err != nil:
		return false, err
	}
	if c.User.Erased > 0 && had {
		if err := p.putPerson(ctx, id, nil); err != nil {
			return true, err
		}
		p.book.SetPerson(id, nil)
	}
	return true, nil
}

// putPerson writes a person; nil erases it.
func (p *People) putPerson(ctx context.Context, id string, who *identity.Person) error {
	text := ""
	if who != nil {
		b, err := json.Marshal(who)
		if err != nil {
			return fmt.Errorf("write the name of user %s: %w", id, err)
		}
		text = string(b)
	}
	return p.log.PutMeta(ctx, store.PersonMeta+id, text)
}

// Names returns the present names of users.
func (p *People) Names() *identity.Names { return p.names.Load() }

// Scope returns the scope of a limit, or the limit's name, with an ID in place of the name of a user.
func (p *People) Scope(text string) string {
	scope, _, _ := strings.Cut(text, "/") // names of users have no slash
	name, is := strings.CutPrefix(scope, "user:")
	if id, known := p.ID(name); is && known {
		return "user:" + id + text[len(scope):]
	}
	return text
}

// Former reports whether a text is the ID of a user, and not a name: one must not find users by it.
func (p *People) Former(text string) (former bool) {
	p.Read(func(b *identity.Book) {
		_, known := b.User(text)
		former = known && b.Person(text).Name != text
	})
	return former
}

// ID returns the ID of the user whom people know by a name.
func (p *People) ID(name string) (id string, known bool) {
	p.Read(func(b *identity.Book) { id, known = b.ID(name) })
	return id, known
}

// Names returns a text with names of users in place of their IDs.
func (g *Gate) Names(text []byte) []byte {
	if g.People == nil { // the log is not read yet
		return text
	}
	return g.People.Names().In(text)
}

// Known returns an ID that names nobody any more.
func (g *Gate) Known(id string) string { return g.People.Names().Known(id) }

// ofUsers reports whether a route is about users, so that its errors may name a person.
func (a Access) ofUsers() bool {
	return strings.Contains(a.Route, " /v1/users/") || strings.Contains(a.Route, " /v1/tokens") ||
		strings.Contains(a.Route, " /v1/budgets")
}

// objectOf returns what a request is about, as the audit trail has it: never the name of a person.
func (g *Gate) objectOf(a Access, r *http.Request) string {
	object := r.PathValue("id")
	if strings.Contains(a.Route, " /v1/users/") {
		object, _ = g.People.ID(object)
	}
	return object
}

// noUser is no ID: a name that nobody has finds nothing.
const noUser = "(nobody)"

// named returns the request with IDs in place of the names of users in its query.
func (g *Gate) named(r *http.Request) *http.Request {
	q := r.URL.Query()
	name := q.Get("user")
	if name == "" || name == OwnerName {
		return r
	}
	id, known := g.People.ID(name)
	if !known && g.People.Former(name) {
		id, known = noUser, true
	}
	if !known || id == name {
		return r
	}
	q.Set("user", id)
	to := *r.URL
	to.RawQuery = q.Encode()
	r = r.Clone(r.Context())
	r.URL = &to
	return r
}

package auth

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/store"
)

// People holds the identity book: users, teams and tokens.
type People struct {
	mu      sync.RWMutex // guards the fields below; serializes changes
	book    *identity.Book
	revised chan struct{} // closed at the next change of the book
	names   atomic.Pointer[identity.Names]
	log     log
}

// log is the source of the identity book: its changes are in the log, and the persons beside it.
type log interface {
	RecordsOf(ctx context.Context, kind string, after uint64, limit int) ([]store.Record, error)
	AllMeta(ctx context.Context) (map[string]string, error)
	PutMeta(ctx context.Context, key, value string) error
}

// ReadPeople builds the identity book.
func ReadPeople(ctx context.Context, log log) (*People, error) {
	p := &People{book: identity.NewBook(), revised: make(chan struct{}), log: log}
	if err := p.readChanges(ctx); err != nil {
		return p, err
	}
	err := p.readPersons(ctx)
	p.names.Store(p.book.Names())
	return p, err
}

// readChanges applies the changes in the log.
func (p *People) readChanges(ctx context.Context) error {
	kind := core.IdentityChanged{}.Kind()
	for after := uint64(0); ; {
		records, err := p.log.RecordsOf(ctx, kind, after, 1000)
		if err != nil || len(records) == 0 {
			return err
		}
		for _, r := range records {
			after = r.Seq
			e, _, err := replay.Decode(r)
			if err != nil {
				return err
			}
			if b, ok := e.Body.(core.IdentityChanged); ok {
				p.book.Apply(b.Change)
			}
		}
	}
}

// Read calls f with the book. f must copy what it keeps.
func (p *People) Read(f func(*identity.Book)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	f(p.book)
}

// HasTeams reports whether there is any team.
func (p *People) HasTeams() (has bool) {
	p.Read(func(b *identity.Book) { has = len(b.Teams()) > 0 })
	return has
}

// HasTeam reports whether the team exists.
func (p *People) HasTeam(name string) (has bool) {
	p.Read(func(b *identity.Book) { _, has = b.Team(name) })
	return has
}

// Change applies a change to the book once write has written it. If the book does not allow the change, it returns
// wrong and writes nothing.
func (p *People) Change(c identity.Change, write func() error) (wrong, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wrong := p.book.Check(c); wrong != nil {
		return wrong, nil
	}
	written, err := p.writePerson(c, write)
	if !written {
		return nil, err
	}
	p.book.Apply(c)
	if c.Person != nil || c.User != nil && c.User.Erased > 0 {
		p.names.Store(p.book.Names())
	}
	close(p.revised)
	p.revised = make(chan struct{})
	return nil, err
}

// who returns the owner of a token.
func (p *People) who(token string) (identity.Caller, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.book.Who(token, time.Now())
}

// standing returns the owner of the token now, the time until it expires, and a channel that closes when the book
// changes.
func (p *People) standing(token, id string) (is identity.Caller, left time.Duration, changed <-chan struct{},
	err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	now := time.Now()
	is, err = p.book.Who(token, now)
	t, _ := p.book.Token(id)
	return is, t.Expires.Sub(now), p.revised, err
}

package auth

import (
	"context"
	"sync"
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
}

// log is the source of the identity book.
type log interface {
	RecordsOf(ctx context.Context, kind string, after uint64, limit int) ([]store.Record, error)
}

// ReadPeople builds the identity book from the changes in the log.
func ReadPeople(ctx context.Context, log log) (*People, error) {
	p := &People{book: identity.NewBook(), revised: make(chan struct{})}
	kind := core.IdentityChanged{}.Kind()
	for after := uint64(0); ; {
		records, err := log.RecordsOf(ctx, kind, after, 1000)
		if err != nil || len(records) == 0 {
			return p, err
		}
		for _, r := range records {
			after = r.Seq
			e, _, err := replay.Decode(r)
			if err != nil {
				return nil, err
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
	if err := write(); err != nil {
		return nil, err
	}
	p.book.Apply(c)
	close(p.revised)
	p.revised = make(chan struct{})
	return nil, nil
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

package store

import (
	"context"
	"errors"
)

// ErrDeposed is returned to a leader that another server has replaced. It has written nothing and cannot write again:
// its state in memory is outdated.
var ErrDeposed = errors.New("another server leads now")

// Replica is a Store that several servers can open. All of them read; one leads and writes. A store that only one
// server can open leads from the start.
type Replica interface {
	Store
	// Lead waits until this server leads. The log may have grown meanwhile, so the caller must read it again.
	Lead(ctx context.Context) error
	// TryLead is Lead without waiting; it returns ErrLocked if another server leads.
	TryLead(ctx context.Context) error
	// Epoch counts the leaders; each write carries its leader's epoch. It is 0 for a store that only one server can
	// open, and for one that has not led.
	Epoch() uint64
	// Leads reports, without a call to the database, whether no other server can lead yet, because the last renewal
	// is younger than the lease. Call it before acting on the world.
	Leads() bool
	// Deposed returns a channel that is closed once this server knows that it no longer leads.
	Deposed() <-chan struct{}
}

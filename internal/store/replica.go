package store

import (
	"context"
	"errors"
	"fmt"
	"time"
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

// PostgresConfig locates a PostgreSQL store and sets the timing of its leadership.
type PostgresConfig struct {
	URL string // postgres://user:password@host/database, or the keywords of libpq
	Dir string // data folder, with the output of programs in a folder that the replicas share
	// Lease is how long a silent leader remains the leader. A takeover takes about as long, and a leader renews four
	// times per lease.
	Lease time.Duration
	// Patience is how long a write waits for an unreachable database, as during a restart or a network outage. Then
	// the write fails, and may have been applied.
	Patience time.Duration
}

// DefaultPostgres returns a server's settings: a takeover within 5 s.
func DefaultPostgres(url, dir string) PostgresConfig {
	return PostgresConfig{URL: url, Dir: dir, Lease: 4 * time.Second, Patience: 30 * time.Second}
}

// Validate returns the first problem and how to fix it.
func (c PostgresConfig) Validate() error {
	switch {
	case c.URL == "":
		return fmt.Errorf("database: no address: write postgres://USER@HOST/DATABASE")
	case c.Dir == "":
		return fmt.Errorf("data folder: none: the output of programs is kept there")
	case c.Lease < 100*time.Millisecond:
		return fmt.Errorf("lease: %v is too short to be renewed in time: 4s is usual", c.Lease)
	case c.Patience < 0:
		return fmt.Errorf("patience: %v is negative", c.Patience)
	}
	return nil
}

// A server holds the folder's lock from Open to Close, so whoever has it open leads.

// Lead implements Replica.
func (s *SQLite) Lead(context.Context) error { return nil }

// TryLead implements Replica.
func (s *SQLite) TryLead(context.Context) error { return nil }

// Epoch implements Replica.
func (s *SQLite) Epoch() uint64 { return 0 }

// Leads implements Replica.
func (s *SQLite) Leads() bool { return true }

// Deposed implements Replica.
func (s *SQLite) Deposed() <-chan struct{} { return nil }

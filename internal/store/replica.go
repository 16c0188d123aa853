package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrDeposed is returned to a leader that another server has replaced. Nothing
// was written, and nothing will be: what it holds in memory is the past.
var ErrDeposed = errors.New("another server leads now")

// Replica is a Store that several servers can open. All of them read; one leads
// and writes. Where there can be but one server, it leads from the start.
type Replica interface {
	Store
	// Lead waits until this server leads. The log may have grown meanwhile: what
	// was read before is the past.
	Lead(ctx context.Context) error
	// TryLead is Lead without waiting: ErrLocked where another server leads.
	TryLead(ctx context.Context) error
	// Epoch counts the leaders; each write of one carries it. It is 0 for a
	// store that only one server can open, and for one that has not led.
	Epoch() uint64
	// Leads reports, without asking anybody, whether nobody else can lead yet:
	// the last renewal is younger than the lease. Who is about to act on the
	// world asks this first.
	Leads() bool
	// Deposed is closed when this server has learned that it leads no more.
	Deposed() <-chan struct{}
}

// PostgresConfig says where a PostgreSQL store lies and how its leaders follow each other.
type PostgresConfig struct {
	URL string // postgres://user:password@host/database, or the keywords of libpq
	Dir string // data folder; logs lie in it, in a folder that the replicas share
	// Lease is how long a leader that is not heard of stays one. A takeover
	// takes about as long, and a leader renews four times within it.
	Lease time.Duration
	// Patience is how long a write waits for a database that is away: it is
	// restarted, or the network is. Then the write fails, and may have happened.
	Patience time.Duration
}

// DefaultPostgres is what a server uses: a takeover within 5 s.
func DefaultPostgres(url, dir string) PostgresConfig {
	return PostgresConfig{URL: url, Dir: dir, Lease: 4 * time.Second, Patience: 30 * time.Second}
}

// Validate returns the first thing that is wrong, and how to put it right.
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

// The folder's lock is held from Open to Close, so who has it open leads.

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

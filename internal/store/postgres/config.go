// Package postgres keeps the history in a PostgreSQL database that several servers share: one leads and writes.
package postgres

import (
	"fmt"
	"time"
)

// Config locates a PostgreSQL store and sets the timing of its leadership.
type Config struct {
	URL string // postgres://user:password@host/database, or the keywords of libpq
	Dir string // data folder, with the output of programs in a folder that the replicas share
	// Lease is how long a silent leader remains the leader. A takeover takes about as long, and a leader renews four
	// times per lease.
	Lease time.Duration
	// Patience is how long a write waits for an unreachable database, as during a restart or a network outage. Then
	// the write fails, and may have been applied.
	Patience time.Duration
}

// Default returns a server's settings: a takeover within 5 s.
func Default(url, dir string) Config {
	return Config{URL: url, Dir: dir, Lease: 4 * time.Second, Patience: 30 * time.Second}
}

// Validate returns the first problem and how to fix it.
func (c Config) Validate() error {
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

//go:build !local

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"scrimp/internal/lib/wait"
	"scrimp/internal/store"
	"scrimp/internal/store/layout"
)

// leader returns the leader's epoch and the end of the log.
func (s *Store) leader(ctx context.Context) (epoch uint64, t layout.Tail, err error) {
	err = s.pool.QueryRow(ctx, "SELECT epoch, seq, kept FROM leader").Scan(&epoch, &t.End, &t.Kept)
	return epoch, t, err
}

// persist repeats do until it succeeds, fails for a reason other than an unreachable database, or Patience has run
// out.
func (s *Store) persist(ctx context.Context, do func(context.Context) error) error {
	tries, cancel := context.WithTimeout(ctx, max(s.cfg.Patience, s.cfg.Lease))
	defer cancel()
	defer s.fresh(ctx, tries)
	for every := 10 * time.Millisecond; ; every = min(2*every, 500*time.Millisecond) {
		err := do(tries)
		if err == nil || errors.Is(err, store.ErrDeposed) || errors.Is(err, store.ErrConflict) ||
			errors.Is(err, store.ErrNeeded) || !away(err) || tries.Err() != nil {
			return err
		}
		if wait.For(tries, every) != nil {
			return err
		}
	}
}

// longest is how long a statement of a leader or candidate waits for its answer before it is sent again on another
// connection: firewalls and moving addresses leave connections that swallow everything for a quarter of an hour or
// more. The first lease of the two is for a leader frozen during a write; see unblock.
func (s *Store) longest() time.Duration { return 2 * s.cfg.Lease }

// fresh closes all connections, so that the next statement opens a new one, if the time of one attempt is over and
// the whole is not. It reports whether it did.
func (s *Store) fresh(whole, one context.Context) bool {
	if whole.Err() != nil || one.Err() == nil {
		return false
	}
	s.pool.Reset()
	return true
}

// fenced runs do in a transaction that holds the leader's row, so that nobody takes over before it ends. do must be
// safe to repeat.
func (s *Store) fenced(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	return s.guarded(ctx, nothing, do)
}

// fencedLate is fenced, but takes the row after do, so that appends wait only for the commit. The database still
// rolls back what a deposed leader did.
func (s *Store) fencedLate(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	return s.guarded(ctx, do, nothing)
}

func nothing(context.Context, pgx.Tx) error { return nil }

// guarded runs before, takes the leader's row and runs after, in one transaction.
func (s *Store) guarded(ctx context.Context, before, after func(context.Context, pgx.Tx) error) error {
	epoch := s.epoch.Load()
	if epoch == 0 {
		return fmt.Errorf("write to the database: this server does not lead: %w", store.ErrDeposed)
	}
	err := s.persist(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if err := before(ctx, tx); err != nil {
				return err
			}
			var one int
			err := tx.QueryRow(ctx, "SELECT 1 FROM leader WHERE epoch = $1 FOR SHARE", int64(epoch)).Scan(&one)
			if errors.Is(err, pgx.ErrNoRows) {
				return store.ErrDeposed
			}
			if err != nil {
				return err
			}
			return after(ctx, tx)
		})
	})
	switch {
	case errors.Is(err, store.ErrDeposed):
		s.lease.lose()
		return err
	case errors.Is(err, store.ErrNeeded):
		return err
	case err != nil:
		return s.failed(err)
	}
	return nil
}

// PutMeta implements Store.
func (s *Store) PutMeta(ctx context.Context, key, value string) error {
	return s.fenced(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = "+
			"excluded.value", key, value)
		return err
	})
}

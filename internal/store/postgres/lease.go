//go:build !local

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"scrimp/internal/lib/wait"
	"scrimp/internal/store"
	"scrimp/internal/store/layout"
)

// lease owns the goroutine that renews it.
type lease struct {
	mu      sync.Mutex
	cancel  context.CancelFunc // stops the renewal
	renewal sync.WaitGroup
	once    sync.Once
	lost    chan struct{}
}

func (l *lease) lose() { l.once.Do(func() { close(l.lost) }) }

func (l *lease) stop() {
	l.mu.Lock()
	if l.cancel != nil {
		l.cancel()
	}
	l.mu.Unlock()
	l.renewal.Wait()
}

// Epoch implements Replica.
func (s *Store) Epoch() uint64 { return s.epoch.Load() }

// Deposed implements Replica.
func (s *Store) Deposed() <-chan struct{} { return s.lease.lost }

// Leads implements Replica. The lease counts from before the renewal was sent, on this machine's monotonic clock, so
// it ends before it ends in the database.
func (s *Store) Leads() bool {
	select {
	case <-s.lease.lost:
		return false
	default:
	}
	return s.epoch.Load() > 0 && time.Since(s.born)-time.Duration(s.renewed.Load()) < s.cfg.Lease
}

// TryLead implements Replica.
func (s *Store) TryLead(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.lease.lost:
		return fmt.Errorf("lead: %w: open the database again", store.ErrDeposed) // its state in memory is outdated
	default:
	}
	if s.epoch.Load() > 0 {
		return nil
	}
	asker := ctx
	ctx, cancel := context.WithTimeout(ctx, s.longest()) // a connection can be dead without an error
	defer cancel()
	defer s.fresh(asker, ctx)
	host, _ := os.Hostname()
	holder := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	sent := time.Now()
	var epoch int64
	var t layout.Tail
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("lead: %w", err)
	}
	defer conn.Release()
	defer s.unblock(ctx, conn.Conn().PgConn().PID())()
	// If a write of the old leader holds the row, this statement waits for it and evaluates the condition again.
	err = conn.QueryRow(ctx, `UPDATE leader SET epoch = epoch + 1, holder = $1, since = clock_timestamp(),
		until = clock_timestamp() + $2::interval
		WHERE until < clock_timestamp() RETURNING epoch, seq, kept`, holder, s.cfg.Lease).Scan(&epoch, &t.End, &t.Kept)
	if errors.Is(err, pgx.ErrNoRows) {
		return s.held(ctx)
	}
	if err != nil {
		return fmt.Errorf("lead: %w", err)
	}
	s.tail = t
	s.renewed.Store(int64(sent.Sub(s.born)))
	s.epoch.Store(uint64(epoch))
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.lease.mu.Lock()
	s.lease.cancel = stop
	s.lease.mu.Unlock()
	s.lease.renewal.Go(func() { s.renew(work, epoch) })
	return nil
}

// unblock ends the sessions that block the backend once it has waited for a lease and the lease has expired.
// Otherwise a leader that was frozen or cut off during a write would keep the lead as long as its connection stands.
// The database rolls back what it wrote. The caller calls done when the backend no longer waits.
func (s *Store) unblock(ctx context.Context, backend uint32) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var waits sync.WaitGroup
	waits.Go(func() {
		for every := s.cfg.Lease; wait.For(ctx, every) == nil; every = s.cfg.Lease / 4 {
			_, _ = s.pool.Exec(ctx,
				`SELECT pg_terminate_backend(b) FROM leader, unnest(pg_blocking_pids($1)) b WHERE until < clock_timestamp()`,
				int32(backend))
		}
	})
	return func() { cancel(); waits.Wait() }
}

// held returns an error that names the leader.
func (s *Store) held(ctx context.Context) error {
	var holder string
	var since time.Time
	if err := s.pool.QueryRow(ctx, "SELECT holder, since FROM leader WHERE epoch > 0").Scan(&holder, &since); err != nil {
		return fmt.Errorf("lead: %w", err)
	}
	return fmt.Errorf("lead: the database is %w by %s since %s: stop that server first, or wait for it",
		store.ErrLocked, holder, since.UTC().Format(time.RFC3339))
}

// Lead implements Replica.
func (s *Store) Lead(ctx context.Context) error {
	for {
		err := s.TryLead(ctx)
		if err == nil || errors.Is(err, store.ErrDeposed) {
			return err
		}
		if !errors.Is(err, store.ErrLocked) && !away(err) && !noRoom(err) {
			return err
		}
		if cause := wait.For(ctx, s.cfg.Lease/8); cause != nil {
			return fmt.Errorf("%w: %w", err, cause)
		}
	}
}

// renew renews the lease until ctx ends or the lease is lost. A renewal without an answer for half a lease is sent
// again at once on another connection: there is still time.
func (s *Store) renew(ctx context.Context, epoch int64) {
	for every := s.cfg.Lease / 4; wait.For(ctx, every) == nil; {
		sent := time.Now()
		once, cancel := context.WithTimeout(ctx, s.cfg.Lease/2)
		tag, err := s.pool.Exec(once, "UPDATE leader SET until = clock_timestamp() + $2::interval WHERE epoch = $1", epoch,
			s.cfg.Lease)
		every = s.cfg.Lease / 4
		if s.fresh(ctx, once) {
			every = 0
		}
		cancel()
		switch {
		case err != nil: // the next one may succeed; Leads knows how old the last is
		case tag.RowsAffected() == 0:
			s.lease.lose()
			return
		default:
			s.renewed.Store(int64(sent.Sub(s.born)))
		}
	}
}

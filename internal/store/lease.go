//go:build !local

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"scrimp/internal/lib/wait"
)

// lease owns the goroutine that renews it.
type lease struct {
	mu      sync.Mutex
	cancel  context.CancelFunc // of the renewal
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
func (s *Postgres) Epoch() uint64 { return s.epoch.Load() }

// Deposed implements Replica.
func (s *Postgres) Deposed() <-chan struct{} { return s.lease.lost }

// Leads implements Replica. The time runs from before the renewal was sent, on
// this machine's monotonic clock, so it ends before the database's does.
func (s *Postgres) Leads() bool {
	select {
	case <-s.lease.lost:
		return false
	default:
	}
	return s.epoch.Load() > 0 && time.Since(s.born)-time.Duration(s.renewed.Load()) < s.cfg.Lease
}

// TryLead implements Replica.
func (s *Postgres) TryLead(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.lease.lost:
		return fmt.Errorf("lead: %w: open the database anew", ErrDeposed) // its memory is of the past
	default:
	}
	if s.epoch.Load() > 0 {
		return nil
	}
	asker := ctx
	ctx, cancel := context.WithTimeout(ctx, s.longest()) // a line can be dead and nobody say so
	defer cancel()
	defer s.fresh(asker, ctx)
	host, _ := os.Hostname()
	holder := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	sent := time.Now()
	var epoch int64
	var t tail
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("lead: %w", err)
	}
	defer conn.Release()
	defer s.unblock(ctx, conn.Conn().PgConn().PID())()
	// Where a write of the old leader holds the row this waits for it, and looks again.
	err = conn.QueryRow(ctx, `UPDATE leader SET epoch = epoch + 1, holder = $1, since = clock_timestamp(),
		until = clock_timestamp() + $2::interval
		WHERE until < clock_timestamp() RETURNING epoch, seq, kept`, holder, s.cfg.Lease).Scan(&epoch, &t.end, &t.kept)
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

// unblock ends the sessions that the backend waits for once it has waited for a
// lease and the lease is over: a leader that was frozen or cut off within a write
// would hold the lead for as long as its connection stands. The database takes
// back what it wrote. The caller calls done when the backend waits no more.
func (s *Postgres) unblock(ctx context.Context, backend uint32) (done func()) {
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

// held says who leads.
func (s *Postgres) held(ctx context.Context) error {
	var holder string
	var since time.Time
	if err := s.pool.QueryRow(ctx, "SELECT holder, since FROM leader WHERE epoch > 0").Scan(&holder, &since); err != nil {
		return fmt.Errorf("lead: %w", err)
	}
	return fmt.Errorf("lead: the database is %w by %s since %s: stop that server first, or wait for it", ErrLocked, holder,
		since.UTC().Format(time.RFC3339))
}

// Lead implements Replica.
func (s *Postgres) Lead(ctx context.Context) error {
	for {
		err := s.TryLead(ctx)
		if err == nil || errors.Is(err, ErrDeposed) {
			return err
		}
		if !errors.Is(err, ErrLocked) && !away(err) && !noRoom(err) {
			return err
		}
		if cause := wait.For(ctx, s.cfg.Lease/8); cause != nil {
			return fmt.Errorf("%w: %w", err, cause)
		}
	}
}

// renew keeps the lease until ctx ends or it is lost. One that has no answer for
// half a lease is sent again at once, by another line: there is time for it.
func (s *Postgres) renew(ctx context.Context, epoch int64) {
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
		case err != nil: // the next one may work; Leads knows how old the last is
		case tag.RowsAffected() == 0:
			s.lease.lose()
			return
		default:
			s.renewed.Store(int64(sent.Sub(s.born)))
		}
	}
}

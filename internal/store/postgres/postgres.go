//go:build !local

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/store"
	"scrimp/internal/store/layout"
	"scrimp/internal/store/logfile"
	"scrimp/internal/store/migrations"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store is a Replica in a PostgreSQL database. As with SQLite, the output of programs is in files.
type Store struct {
	logfile.Files
	cfg  Config
	pool *pgxpool.Pool

	mu   sync.Mutex // held during an append
	tail layout.Tail

	tenants, kinds *names
	unsure         bool // an append failed and may have been applied

	epoch   atomic.Uint64
	renewed atomic.Int64 // when the last renewal was sent, in nanoseconds after born
	born    time.Time    // carries the monotonic clock
	lease   lease
}

// Open connects, creates or migrates the schema, and returns a store that reads; it writes once it leads.
func Open(ctx context.Context, cfg Config) (store.Replica, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("open data folder: %w: give another with --data", err)
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", errAddress) // the library's text may repeat the password
	}
	pc.MaxConns = max(pc.MaxConns, 8)
	// The library's timeout is longer than a takeover may take.
	pc.ConnConfig.ConnectTimeout = min(pc.ConnConfig.ConnectTimeout, 2*cfg.Lease)
	for name, value := range map[string]string{
		"application_name":              "scrimp",
		"synchronous_commit":            "on", // acknowledged writes are on disk, whatever the database's default
		"default_transaction_isolation": "read committed",
		// A frozen leader must not hold a lock.
		"idle_in_transaction_session_timeout": fmt.Sprint(cfg.Lease.Milliseconds()),
		// Each statement has its own limit, after which it is sent again.
		"statement_timeout": "0",
		"lock_timeout":      "0",
	} {
		pc.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	s := &Store{Files: logfile.In(cfg.Dir), cfg: cfg, pool: pool, born: time.Now(), tenants: newNames("tenant"),
		kinds: newNames("kind")}
	s.lease.lost = make(chan struct{})
	if err := s.migrate(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return s, nil
}

// errAddress does not repeat the address.
var errAddress = errors.New("its address is invalid (not repeated here, because it may contain a password): " +
	"write postgres://USER@HOST:PORT/DATABASE?sslmode=MODE, with % and other special characters of a name encoded as " +
	"%25 and " +
	"so on, and the password in PGPASSWORD or ~/.pgpass")

// migrate applies the missing migrations, each in its own transaction. If several servers start at once, one migrates
// and the others wait.
func (s *Store) migrate(ctx context.Context) error {
	files, err := migrations.Of("postgres")
	if err != nil {
		return err
	}
	for done := false; !done; {
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			var have int
			// The number is arbitrary but the same in all servers.
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(7310009)"); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY, at "+
				"timestamptz NOT NULL DEFAULT now())"); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&have); err != nil {
				return err
			}
			if err := migrations.Readable(have, migrations.Before+len(files)); err != nil {
				return err
			}
			have = max(have, migrations.Before)
			if done = have == migrations.Before+len(files); done {
				return nil
			}
			name := files[have-migrations.Before]
			text, err := migrations.FS.ReadFile(name)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, string(text)); err != nil {
				return fmt.Errorf("migrate to %d (%s): %w", have+1, name, err)
			}
			_, err = tx.Exec(ctx, "INSERT INTO schema_version (version) VALUES ($1)", have+1)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close releases the leadership, so that another server takes over at once, and disconnects.
func (s *Store) Close() error {
	s.lease.stop()
	if epoch := s.epoch.Swap(0); epoch > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Lease)
		defer cancel()
		// On failure the lease expires.
		_, _ = s.pool.Exec(ctx, "UPDATE leader SET until = '-infinity' WHERE epoch = $1", int64(epoch))
	}
	s.pool.Close()
	return nil
}

// failed states that the database caused the error, as in most failures.
func (s *Store) failed(err error) error {
	var pg *pgconn.PgError
	switch {
	case noRoom(err):
		return fmt.Errorf("write to the database: %w: %w: make room on the disk of the PostgreSQL server, which is full",
			err, store.ErrFull)
	case errors.As(err, &pg):
		return fmt.Errorf("write to the database: %w", err)
	}
	return fmt.Errorf("write to the database: %w: %w", err, errUnreached)
}

// errUnreached is the hint for a write without an answer.
var errUnreached = errors.New("is the PostgreSQL server running and reachable from here?")

// Away reports whether err only says that the database is unreachable for now, so that a retry may succeed soon.
func Away(err error) bool {
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	var op *net.OpError
	switch {
	case errors.As(err, &pg):
		return away(err) || noRoom(err)
	case errors.As(err, &connect):
		return true
	case errors.As(err, &op):
		return op.Op != "listen" // that is a port or socket of this machine
	}
	return pgconn.Timeout(err) || errors.Is(err, errUnreached) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// away reports whether an error comes from the connection or from a server that is shutting down, so that a retry may
// succeed soon.
func away(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return true
	}
	// Shutting down, crashed, starting up; connections lost or too many; cancelled by an administrator or by the
	// database's own timeout; deadlock or conflict.
	return strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") ||
		slices.Contains([]string{"53300", "57014", "25P03", "25P04", "55P03", "40001", "40P01"}, pg.Code)
}

// noRoom reports whether the database's disk is full. Nothing was written then, and a retry works once there is room.
func noRoom(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "53100"
}

// columns holds what an append sends: one array per column.
type columns struct {
	events, samples                               recordColumns
	pEvent                                        []int64
	pLine                                         []int32
	pTenant, pJob, pCurrency, pFrom, pTo, pAmount []string
	pHash, pRest                                  [][]byte
}

type recordColumns struct {
	seq, at, gap      []int64
	tenant, kind      []int32
	key, event, facts []string
}

func (s *Store) newColumns(ctx context.Context, records []store.Record, gaps []int64) (c columns, err error) {
	tenants, kinds := make([]string, len(records)), make([]string, len(records))
	for i, r := range records {
		tenants[i], kinds[i] = r.Tenant, r.Kind
	}
	tenant, err := s.tenants.number(ctx, s, tenants)
	if err != nil {
		return c, err
	}
	kind, err := s.kinds.number(ctx, s, kinds)
	if err != nil {
		return c, err
	}
	for i := range records {
		r := &records[i]
		to := &c.events
		if r.Sample {
			to = &c.samples
		}
		to.seq, to.at, to.gap = append(to.seq, int64(r.Seq)), append(to.at, r.At.UnixNano()), append(to.gap, gaps[i])
		to.tenant, to.kind, to.key = append(to.tenant, tenant[i]), append(to.kind, kind[i]), append(to.key, r.Key)
		to.event, to.facts = append(to.event, layout.Shorten(r)), append(to.facts, string(r.Facts))
		for i := range r.Postings {
			p := &r.Postings[i]
			c.pEvent, c.pLine = append(c.pEvent, int64(p.Event)), append(c.pLine, int32(p.Line))
			c.pTenant, c.pJob, c.pCurrency = append(c.pTenant, p.Owner.Tenant), append(c.pJob, p.Owner.Job),
				append(c.pCurrency, string(p.Currency))
			c.pFrom, c.pTo, c.pAmount = append(c.pFrom, string(p.From)), append(c.pTo, string(p.To)),
				append(c.pAmount, p.Amount.String())
			c.pHash, c.pRest = append(c.pHash, p.Hash[:]), append(c.pRest, layout.Pack(p))
		}
	}
	return c, nil
}

// Append implements Store.
func (s *Store) Append(ctx context.Context, records []store.Record) error {
	return s.append(ctx, records, false)
}

// Copy implements Store.
func (s *Store) Copy(ctx context.Context, records []store.Record) error {
	return s.append(ctx, records, true)
}

func (s *Store) append(ctx context.Context, records []store.Record, holes bool) error {
	if len(records) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append event %d: %w", records[0].Seq, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	epoch := s.epoch.Load()
	if epoch == 0 {
		return fmt.Errorf("append event %d: this server does not lead: %w", records[0].Seq, store.ErrDeposed)
	}
	if s.unsure {
		_, t, err := s.leader(ctx)
		if err != nil {
			return s.failed(err)
		}
		s.tail, s.unsure = t, false
	}
	gaps, next, err := s.tail.Follow(records, holes)
	if err != nil {
		return err
	}
	c, err := s.newColumns(ctx, records, gaps)
	if err != nil {
		return err
	}
	again, err := s.send(ctx, epoch, next, c)
	switch {
	case err == nil:
		s.tail = next
		return nil
	case errors.Is(err, store.ErrDeposed) || errors.Is(err, store.ErrConflict):
		return err
	}
	s.unsure = again
	return s.failed(err)
}

// send writes records that lead to the tail next. If the connection breaks, it reads the log's end to learn whether
// they arrived, and sends them again if not: only this leader moves the end. unsure means that they may have arrived.
func (s *Store) send(ctx context.Context, epoch uint64, next layout.Tail, c columns) (unsure bool, err error) {
	err = s.persist(ctx, func(ctx context.Context) error {
		sent := time.Now()
		var fenced int
		tries := ctx
		ctx, cancel := context.WithTimeout(ctx, s.longest())
		defer cancel()
		defer s.fresh(tries, ctx)
		sql, args := c.statement(epoch, s.tail, next, s.cfg.Lease)
		err := s.pool.QueryRow(ctx, sql, args...).Scan(&fenced)
		if err != nil {
			unsure = unsure || away(err)
			return err
		}
		if fenced == 1 {
			s.renewed.Store(int64(sent.Sub(s.born)))
			return nil
		}
		now, there, err := s.leader(ctx)
		switch {
		case err != nil:
			return err
		case now != epoch:
			s.lease.lose()
			return fmt.Errorf("append after event %d: %w", s.tail.End, store.ErrDeposed)
		case unsure && there == next:
			return nil // the previous attempt arrived, and its answer was lost
		}
		return fmt.Errorf("append after event %d: the log ends at %d: %w", s.tail.End, there.End, store.ErrConflict)
	})
	return unsure, err
}

// DropSamples implements Store.
func (s *Store) DropSamples(ctx context.Context, upTo uint64) (dropped int, err error) {
	for some := int64(layout.Slice); some == layout.Slice; dropped += int(some) {
		err := s.fenced(ctx, func(ctx context.Context, tx pgx.Tx) error {
			var older, end int64
			if err := tx.QueryRow(ctx, "SELECT (SELECT coalesce(min(seq), 0) FROM snapshot), seq FROM leader").Scan(&older,
				&end); err != nil {
				return err
			}
			if err := layout.Needed(upTo, uint64(older)); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, "DELETE FROM sample WHERE seq IN (SELECT seq FROM sample WHERE seq <= $1 AND seq < $2 "+
				"ORDER BY seq LIMIT $3)", int64(upTo), end, layout.Slice)
			some = tag.RowsAffected()
			return err
		})
		if err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

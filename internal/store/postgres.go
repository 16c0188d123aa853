//go:build !local

package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Postgres is a Replica in a PostgreSQL database. The output of programs lies
// in files, as it does beside SQLite.
type Postgres struct {
	logFiles
	cfg  PostgresConfig
	pool *pgxpool.Pool

	mu     sync.Mutex // held over an append
	next   uint64     // sequence number that the log wants next
	unsure bool       // an append failed and may have happened

	epoch   atomic.Uint64
	renewed atomic.Int64 // nanoseconds after born that the last renewal was sent at
	born    time.Time    // has the monotonic clock
	lease   lease
}

// OpenPostgres connects, makes the schema or brings it up to date, and returns
// a store that reads; it writes once it leads.
func OpenPostgres(ctx context.Context, cfg PostgresConfig) (Replica, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("open data folder: %w: give another with --data", err)
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w: write postgres://USER@HOST/DATABASE", err)
	}
	pc.MaxConns = max(pc.MaxConns, 8)
	pc.ConnConfig.ConnectTimeout = min(pc.ConnConfig.ConnectTimeout, 2*cfg.Lease) // the library's is longer than a takeover may take
	for name, value := range map[string]string{
		"application_name":                    "scrimp",
		"synchronous_commit":                  "on", // what is acknowledged is on the disk, whatever the database's default
		"default_transaction_isolation":       "read committed",
		"idle_in_transaction_session_timeout": fmt.Sprint(cfg.Lease.Milliseconds()), // a leader that was frozen holds no lock
	} {
		pc.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	s := &Postgres{logFiles: logFiles{cfg.Dir}, cfg: cfg, pool: pool, born: time.Now()}
	s.lease.lost = make(chan struct{})
	if err := s.migrate(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return s, nil
}

// migrate applies what is missing, each in a transaction of its own. Of several
// servers that start at once one does it and the others wait.
func (s *Postgres) migrate(ctx context.Context) error {
	files, err := schemas("postgres")
	if err != nil {
		return err
	}
	for done := false; !done; {
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			var have int
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(7310009)"); err != nil { // any number, the same in all servers
				return err
			}
			if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&have); err != nil {
				return err
			}
			if have > len(files) {
				return newer(have, len(files))
			}
			if done = have == len(files); done {
				return nil
			}
			text, err := migrations.ReadFile(files[have])
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, string(text)); err != nil {
				return fmt.Errorf("migrate to %d (%s): %w", have+1, files[have], err)
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

// Close gives the leadership up, so that another server takes over at once, and disconnects.
func (s *Postgres) Close() error {
	s.lease.stop()
	if epoch := s.epoch.Swap(0); epoch > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Lease)
		defer cancel()
		_, _ = s.pool.Exec(ctx, "UPDATE leader SET until = '-infinity' WHERE epoch = $1", int64(epoch)) // else the lease runs out
	}
	s.pool.Close()
	return nil
}

// failed names the database's part in it, since most failures are its.
func (s *Postgres) failed(err error) error {
	var pg *pgconn.PgError
	switch {
	case noRoom(err):
		return fmt.Errorf("write to the database: %w: %w: make room on the disk of the PostgreSQL server, which is full", err, ErrFull)
	case errors.As(err, &pg):
		return fmt.Errorf("write to the database: %w", err)
	}
	return fmt.Errorf("write to the database: %w: %w", err, errUnreached)
}

// errUnreached is said of a write that had no answer.
var errUnreached = errors.New("does the PostgreSQL server run, and is it reached from here?")

// Away reports whether err says that the database is out of reach for now, so that
// the same may work again soon, and nothing else is wrong.
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
	return pgconn.Timeout(err) || errors.Is(err, errUnreached) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// away reports whether an error is of the connection or of a server that goes
// down, so that the same may work again soon.
func away(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return true
	}
	// shutting down, crashed, starting up; connections lost or too many; deadlock or conflict
	return strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") || pg.Code == "53300" || pg.Code == "40001" || pg.Code == "40P01"
}

// noRoom reports whether the disk of the database's machine is full. Nothing was
// written then, and the same works once there is room.
func noRoom(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "53100"
}

// columns are what an append sends: one array a column.
type columns struct {
	seq, at                                       []int64
	tenant, kind, key, event, decisions, actions  []string
	pEvent                                        []int64
	pLine                                         []int32
	pTenant, pJob, pCurrency, pFrom, pTo, pAmount []string
	pText                                         []string
}

func newColumns(records []Record) (c columns, err error) {
	for _, r := range records {
		c.seq, c.at = append(c.seq, int64(r.Seq)), append(c.at, r.At.UnixNano())
		c.tenant, c.kind, c.key = append(c.tenant, r.Tenant), append(c.kind, r.Kind), append(c.key, r.Key)
		c.event, c.decisions, c.actions = append(c.event, string(r.Event)), append(c.decisions, string(r.Decisions)), append(c.actions, string(r.Actions))
		for _, p := range r.Postings {
			text, err := json.Marshal(p)
			if err != nil {
				return c, fmt.Errorf("append event %d: %w", r.Seq, err)
			}
			c.pEvent, c.pLine = append(c.pEvent, int64(p.Event)), append(c.pLine, int32(p.Line))
			c.pTenant, c.pJob, c.pCurrency = append(c.pTenant, p.Owner.Tenant), append(c.pJob, p.Owner.Job), append(c.pCurrency, string(p.Currency))
			c.pFrom, c.pTo, c.pAmount = append(c.pFrom, string(p.From)), append(c.pTo, string(p.To)), append(c.pAmount, p.Amount.String())
			c.pText = append(c.pText, string(text))
		}
	}
	return c, nil
}

// appendSQL is one statement, hence one transaction and one way to the server
// and back. It begins with the fence: where the epoch is past or the log ends
// elsewhere, there is no row and nothing is written.
const appendSQL = `
WITH fence AS (
  UPDATE leader SET seq = $3, until = clock_timestamp() + $4::interval WHERE epoch = $1 AND seq = $2 RETURNING 1
), events AS (
  INSERT INTO event (seq, epoch, tenant, at, kind, key, event, decisions, actions)
  SELECT seq, $1, tenant, at, kind, nullif(key, ''), event, nullif(decisions, ''), nullif(actions, '')
  FROM unnest($5::bigint[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])
    AS e (seq, tenant, at, kind, key, event, decisions, actions)
  WHERE EXISTS (SELECT FROM fence)
), postings AS (
  INSERT INTO posting (event, line, tenant, job, currency, source, target, amount, posting)
  SELECT event, line, tenant, job, currency, source, target, amount::numeric, posting
  FROM unnest($13::bigint[], $14::integer[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[])
    AS p (event, line, tenant, job, currency, source, target, amount, posting)
  WHERE EXISTS (SELECT FROM fence)
)
SELECT count(*) FROM fence`

// Append implements Store. Where the connection breaks, it asks the database
// whether the records came through, and sends them again where they did not:
// only this leader moves the log's end, so the end is the answer.
func (s *Postgres) Append(ctx context.Context, records []Record) error {
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
		return fmt.Errorf("append event %d: this server does not lead: %w", records[0].Seq, ErrDeposed)
	}
	if s.unsure {
		_, end, err := s.leader(ctx)
		if err != nil {
			return s.failed(err)
		}
		s.next, s.unsure = end+1, false
	}
	if err := follows(records, s.next); err != nil {
		return err
	}
	c, err := newColumns(records)
	if err != nil {
		return err
	}
	last := records[len(records)-1].Seq
	again := false
	err = s.persist(ctx, func(ctx context.Context) error {
		sent := time.Now()
		var fenced int
		tries := ctx
		ctx, cancel := context.WithTimeout(ctx, s.longest())
		defer cancel()
		defer s.fresh(tries, ctx)
		err := s.pool.QueryRow(ctx, appendSQL, int64(epoch), int64(records[0].Seq-1), int64(last), s.cfg.Lease,
			c.seq, c.tenant, c.at, c.kind, c.key, c.event, c.decisions, c.actions,
			c.pEvent, c.pLine, c.pTenant, c.pJob, c.pCurrency, c.pFrom, c.pTo, c.pAmount, c.pText).Scan(&fenced)
		if err != nil {
			again = again || away(err)
			return err
		}
		if fenced == 1 {
			s.renewed.Store(int64(sent.Sub(s.born)))
			return nil
		}
		now, end, err := s.leader(ctx)
		switch {
		case err != nil:
			return err
		case now != epoch:
			s.lease.lose()
			return fmt.Errorf("append event %d: %w", records[0].Seq, ErrDeposed)
		case again && end == last:
			return nil // the one before came through and its answer was lost
		}
		return fmt.Errorf("append event %d: the log ends at %d: %w", records[0].Seq, end, ErrConflict)
	})
	switch {
	case err == nil:
		s.next = last + 1
		return nil
	case errors.Is(err, ErrDeposed) || errors.Is(err, ErrConflict):
		return err
	}
	s.unsure = again
	return s.failed(err)
}

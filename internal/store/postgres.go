//go:build !local

package store

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

	"scrimp/internal/store/logfile"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Postgres is a Replica in a PostgreSQL database. The output of programs lies
// in files, as it does beside SQLite.
type Postgres struct {
	logfile.Files
	cfg  PostgresConfig
	pool *pgxpool.Pool

	mu   sync.Mutex // held over an append
	tail tail

	tenants, kinds *names
	unsure         bool // an append failed and may have happened

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
		return nil, fmt.Errorf("open the database: %w", errAddress) // the library's own words may repeat the password
	}
	pc.MaxConns = max(pc.MaxConns, 8)
	// the library's is longer than a takeover may take
	pc.ConnConfig.ConnectTimeout = min(pc.ConnConfig.ConnectTimeout, 2*cfg.Lease)
	for name, value := range map[string]string{
		"application_name":              "scrimp",
		"synchronous_commit":            "on", // what is acknowledged is on the disk, whatever the database's default
		"default_transaction_isolation": "read committed",
		// a leader that was frozen holds no lock
		"idle_in_transaction_session_timeout": fmt.Sprint(cfg.Lease.Milliseconds()),
		// each statement has a limit of its own, and is sent again then
		"statement_timeout": "0",
		"lock_timeout":      "0",
	} {
		pc.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	s := &Postgres{Files: logfile.In(cfg.Dir), cfg: cfg, pool: pool, born: time.Now(), tenants: newNames("tenant"),
		kinds: newNames("kind")}
	s.lease.lost = make(chan struct{})
	if err := s.migrate(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return s, nil
}

// errAddress says nothing of the address itself.
var errAddress = errors.New("its address cannot be read, and is not repeated here since it may hold a password: " +
	"write postgres://USER@HOST:PORT/DATABASE?sslmode=MODE, % and what else is no letter or digit of a name as %25 and " +
	"so on, and the password in PGPASSWORD or ~/.pgpass")

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
			// any number, the same in all servers
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
			if err := readable(have, before+len(files)); err != nil {
				return err
			}
			have = max(have, before)
			if done = have == before+len(files); done {
				return nil
			}
			name := files[have-before]
			text, err := migrations.ReadFile(name)
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

// Close gives the leadership up, so that another server takes over at once, and disconnects.
func (s *Postgres) Close() error {
	s.lease.stop()
	if epoch := s.epoch.Swap(0); epoch > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Lease)
		defer cancel()
		// else the lease runs out
		_, _ = s.pool.Exec(ctx, "UPDATE leader SET until = '-infinity' WHERE epoch = $1", int64(epoch))
	}
	s.pool.Close()
	return nil
}

// failed names the database's part in it, since most failures are its.
func (s *Postgres) failed(err error) error {
	var pg *pgconn.PgError
	switch {
	case noRoom(err):
		return fmt.Errorf("write to the database: %w: %w: make room on the disk of the PostgreSQL server, which is full",
			err, ErrFull)
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
	return pgconn.Timeout(err) || errors.Is(err, errUnreached) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// away reports whether an error is of the connection or of a server that goes
// down, so that the same may work again soon.
func away(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return true
	}
	// shutting down, crashed, starting up; connections lost or too many; cancelled by an administrator or a timeout of
	// the database's own; deadlock or conflict
	return strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") ||
		slices.Contains([]string{"53300", "57014", "25P03", "25P04", "55P03", "40001", "40P01"}, pg.Code)
}

// noRoom reports whether the disk of the database's machine is full. Nothing was
// written then, and the same works once there is room.
func noRoom(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "53100"
}

// columns are what an append sends: one array a column.
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

func (s *Postgres) newColumns(ctx context.Context, records []Record, gaps []int64) (c columns, err error) {
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
		to.event, to.facts = append(to.event, shorten(r)), append(to.facts, string(r.Facts))
		for i := range r.Postings {
			p := &r.Postings[i]
			c.pEvent, c.pLine = append(c.pEvent, int64(p.Event)), append(c.pLine, int32(p.Line))
			c.pTenant, c.pJob, c.pCurrency = append(c.pTenant, p.Owner.Tenant), append(c.pJob, p.Owner.Job),
				append(c.pCurrency, string(p.Currency))
			c.pFrom, c.pTo, c.pAmount = append(c.pFrom, string(p.From)), append(c.pTo, string(p.To)),
				append(c.pAmount, p.Amount.String())
			c.pHash, c.pRest = append(c.pHash, p.Hash[:]), append(c.pRest, pack(p))
		}
	}
	return c, nil
}

// Append implements Store.
func (s *Postgres) Append(ctx context.Context, records []Record) error {
	return s.append(ctx, records, false)
}

// Copy implements Store.
func (s *Postgres) Copy(ctx context.Context, records []Record) error {
	return s.append(ctx, records, true)
}

func (s *Postgres) append(ctx context.Context, records []Record, holes bool) error {
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
		_, t, err := s.leader(ctx)
		if err != nil {
			return s.failed(err)
		}
		s.tail, s.unsure = t, false
	}
	gaps, next, err := s.tail.follow(records, holes)
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
	case errors.Is(err, ErrDeposed) || errors.Is(err, ErrConflict):
		return err
	}
	s.unsure = again
	return s.failed(err)
}

// send writes records that lead to the tail next. Where the connection breaks, it asks
// the database whether they came through, and sends them again where they did not:
// only this leader moves the log's end, so the end is the answer. unsure: they may have come through.
func (s *Postgres) send(ctx context.Context, epoch uint64, next tail, c columns) (unsure bool, err error) {
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
			return fmt.Errorf("append after event %d: %w", s.tail.end, ErrDeposed)
		case unsure && there == next:
			return nil // the one before came through and its answer was lost
		}
		return fmt.Errorf("append after event %d: the log ends at %d: %w", s.tail.end, there.end, ErrConflict)
	})
	return unsure, err
}

// DropSamples implements Store.
func (s *Postgres) DropSamples(ctx context.Context, upTo uint64) (dropped int, err error) {
	for some := int64(slice); some == slice; dropped += int(some) {
		err := s.fenced(ctx, func(ctx context.Context, tx pgx.Tx) error {
			var older, end int64
			if err := tx.QueryRow(ctx, "SELECT (SELECT coalesce(min(seq), 0) FROM snapshot), seq FROM leader").Scan(&older,
				&end); err != nil {
				return err
			}
			if err := needed(upTo, uint64(older)); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, "DELETE FROM sample WHERE seq IN (SELECT seq FROM sample WHERE seq <= $1 AND seq < $2 "+
				"ORDER BY seq LIMIT $3)", int64(upTo), end, slice)
			some = tag.RowsAffected()
			return err
		})
		if err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

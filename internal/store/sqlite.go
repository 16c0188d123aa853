package store

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/big"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"scrimp/internal/ledger"
)

//go:embed migrations/*.sql
var migrations embed.FS

// SQLite is a Store in one folder: scrimp.db, logs/, and a lock that one server holds.
type SQLite struct {
	dir   string
	lock  *os.File
	write *sql.DB // one connection
	reads *sql.DB
	next  uint64 // sequence number that the log wants next
}

// Open opens the folder's database, makes it at first use, and brings its
// schema up to date. It returns ErrLocked where another server has it.
func Open(dir string) (*SQLite, error) {
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("open data folder: %w: give another with --data", err)
	}
	lock, err := takeLock(filepath.Join(dir, "server.lock"))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	s := &SQLite{dir: dir, lock: lock}
	path := filepath.Join(dir, "scrimp.db")
	const pragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(ON)&_txlock=immediate"
	if s.write, err = sql.Open("sqlite", "file:"+path+pragmas); err == nil {
		s.write.SetMaxOpenConns(1)
		s.reads, err = sql.Open("sqlite", "file:"+path+pragmas)
	}
	if err == nil {
		_, err = Migrate(context.Background(), s.write, path)
	}
	if err == nil {
		err = s.write.QueryRow("SELECT coalesce(max(seq), 0) + 1 FROM event").Scan(&s.next)
	}
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return s, nil
}

// Migrate brings db to the newest schema and returns the versions it applied.
// Each runs in a transaction of its own, together with the note that it ran. A
// database that holds something is copied beside itself first.
func Migrate(ctx context.Context, db *sql.DB, path string) (applied []int, err error) {
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, at TEXT NOT NULL) STRICT"); err != nil {
		return nil, fmt.Errorf("read schema version: %w", err)
	}
	files, err := fs.Glob(migrations, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var have int
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&have); err != nil {
		return nil, fmt.Errorf("read schema version: %w", err)
	}
	if have > len(files) {
		return nil, fmt.Errorf("the database has schema %d, this program knows only %d: use a newer program", have, len(files))
	}
	if have > 0 && have < len(files) {
		if _, err := db.ExecContext(ctx, "VACUUM INTO ?", fmt.Sprintf("%s.schema-%d", path, have)); err != nil {
			return nil, fmt.Errorf("copy the database before its schema changes: %w", err)
		}
	}
	for i, name := range files[have:] {
		version := have + i + 1
		if err := apply(ctx, db, name, version); err != nil {
			return applied, fmt.Errorf("migrate to %d (%s): %w", version, name, err)
		}
		applied = append(applied, version)
	}
	return applied, nil
}

func apply(ctx context.Context, db *sql.DB, name string, version int) error {
	text, err := migrations.ReadFile(name)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO schema_version (version, at) VALUES (?, datetime('now'))", version); err != nil {
		return err
	}
	return tx.Commit()
}

// Close lets the folder go.
func (s *SQLite) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.reads, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

// Append implements Store.
func (s *SQLite) Append(ctx context.Context, records []Record) error {
	if len(records) == 0 {
		return nil
	}
	for i, r := range records {
		if r.Seq != s.next+uint64(i) {
			return fmt.Errorf("append event %d: the log ends before %d: %w", r.Seq, s.next, ErrConflict)
		}
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(err)
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	for _, r := range records {
		if _, err := tx.ExecContext(ctx, "INSERT INTO event (seq, tenant, at, kind, key, event, decisions, actions) VALUES (?, ?, ?, ?, nullif(?, ''), ?, nullif(?, ''), nullif(?, ''))",
			int64(r.Seq), r.Tenant, r.At.UnixNano(), r.Kind, r.Key, string(r.Event), string(r.Decisions), string(r.Actions)); err != nil {
			return s.failed(err)
		}
		for _, p := range r.Postings {
			text, err := json.Marshal(p)
			if err != nil {
				return fmt.Errorf("append event %d: %w", r.Seq, err)
			}
			micros, picos := new(big.Int).QuoRem(p.Amount.Big(), big.NewInt(1_000_000), new(big.Int))
			if !micros.IsInt64() {
				return fmt.Errorf("append event %d: amount %v does not fit the database", r.Seq, p.Amount)
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO posting (event, line, tenant, job, currency, source, target, micros, picos, posting) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
				int64(p.Event), p.Line, p.Owner.Tenant, p.Owner.Job, string(p.Currency), string(p.From), string(p.To), micros.Int64(), picos.Int64(), string(text)); err != nil {
				return s.failed(err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return s.failed(err)
	}
	s.next += uint64(len(records))
	return nil
}

// failed names the folder, since most failures are its.
func (s *SQLite) failed(err error) error {
	return fmt.Errorf("write to the database in %s: %w: is its disk full or read-only?", s.dir, err)
}

// Records implements Store.
func (s *SQLite) Records(ctx context.Context, after uint64, limit int) ([]Record, error) {
	rows, err := s.reads.QueryContext(ctx, "SELECT seq, tenant, at, kind, coalesce(key, ''), event, coalesce(decisions, ''), coalesce(actions, '') FROM event WHERE seq > ? ORDER BY seq LIMIT ?", int64(after), limit)
	if err != nil {
		return nil, fmt.Errorf("read events after %d: %w", after, err)
	}
	defer func() { _ = rows.Close() }()
	var list []Record
	for rows.Next() {
		var r Record
		var seq, at int64
		var event, decisions, actions string
		if err := rows.Scan(&seq, &r.Tenant, &at, &r.Kind, &r.Key, &event, &decisions, &actions); err != nil {
			return nil, fmt.Errorf("read events after %d: %w", after, err)
		}
		r.Seq, r.At, r.Event = uint64(seq), time.Unix(0, at).UTC(), json.RawMessage(event)
		if decisions != "" {
			r.Decisions = json.RawMessage(decisions)
		}
		if actions != "" {
			r.Actions = json.RawMessage(actions)
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// Seen implements Store.
func (s *SQLite) Seen(ctx context.Context, tenant, key string) (uint64, bool, error) {
	var seq int64
	err := s.reads.QueryRowContext(ctx, "SELECT seq FROM event WHERE tenant = ? AND key = ? ORDER BY seq LIMIT 1", tenant, key).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return uint64(seq), err == nil, err
}

// SaveSnapshot implements Store.
func (s *SQLite) SaveSnapshot(ctx context.Context, snap Snapshot) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(err)
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO snapshot (seq, version, state) VALUES (?, ?, ?)", int64(snap.Seq), snap.Version, string(snap.State)); err != nil {
		return s.failed(err)
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT 2)"); err != nil {
		return s.failed(err)
	}
	return tx.Commit()
}

// LatestSnapshot implements Store.
func (s *SQLite) LatestSnapshot(ctx context.Context) (Snapshot, bool, error) {
	var snap Snapshot
	var seq int64
	var state string
	err := s.reads.QueryRowContext(ctx, "SELECT seq, version, state FROM snapshot ORDER BY seq DESC LIMIT 1").Scan(&seq, &snap.Version, &state)
	if errors.Is(err, sql.ErrNoRows) {
		return snap, false, nil
	}
	snap.Seq, snap.State = uint64(seq), json.RawMessage(state)
	return snap, err == nil, err
}

// Postings implements Store.
func (s *SQLite) Postings(ctx context.Context, tenant, job string) iter.Seq2[ledger.Posting, error] {
	return func(yield func(ledger.Posting, error) bool) {
		rows, err := s.reads.QueryContext(ctx, "SELECT posting FROM posting WHERE tenant = ? AND (? = '' OR job = ?) ORDER BY event, line", tenant, job, job)
		if err != nil {
			yield(ledger.Posting{}, fmt.Errorf("read postings: %w", err))
			return
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var text string
			var p ledger.Posting
			err := rows.Scan(&text)
			if err == nil {
				err = json.Unmarshal([]byte(text), &p)
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(ledger.Posting{}, fmt.Errorf("read postings: %w", err))
		}
	}
}

// PutMeta implements Store.
func (s *SQLite) PutMeta(ctx context.Context, key, value string) error {
	if _, err := s.write.ExecContext(ctx, "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", key, value); err != nil {
		return s.failed(err)
	}
	return nil
}

// Meta implements Store.
func (s *SQLite) Meta(ctx context.Context, key string) (string, bool, error) {
	var v string
	err := s.reads.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", key).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return v, err == nil, err
}

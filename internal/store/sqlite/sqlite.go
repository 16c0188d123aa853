// Package sqlite keeps the history in a folder of files that one server holds.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"scrimp/internal/store"
	"scrimp/internal/store/layout"
	"scrimp/internal/store/logfile"

	"modernc.org/sqlite" // also registers the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Store is a Store in one folder: scrimp.db, view.db, logs/, and a lock that one server holds.
type Store struct {
	logfile.Files
	dir   string
	lock  *os.File
	write *sql.DB // one connection
	reads *sql.DB
	view  sqliteView

	mu        sync.Mutex
	tail      layout.Tail
	addEvent  *sql.Stmt
	addSample *sql.Stmt
	addEntry  *sql.Stmt
	addPart   *sql.Stmt
	addMeta   *sql.Stmt
	seen      *sql.Stmt // prepared on reads
}

// databaseName is the database's file in the folder.
const databaseName = "scrimp.db"

// pragmas configure each connection. FULL makes a commit durable when it returns, even if power is lost. FAST erases
// deleted bytes, such as copies of an erased name, in pages that are written anyway.
const pragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(FAST)" +
	"&_pragma=busy_timeout(5000)&_pragma=foreign_keys(ON)"

// Open opens the folder's database, creates it at first use, and migrates its schema. It returns ErrLocked if another
// server has it open.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("open data folder: %w: give another with --data", err)
	}
	lock, err := takeLock(filepath.Join(dir, "server.lock"))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	s := &Store{Files: logfile.In(dir), dir: dir, lock: lock}
	if err := s.open(); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open %s: %w", filepath.Join(dir, databaseName), err)
	}
	return s, nil
}

// address returns a database's file as a SQLite URI with options, whatever characters the folder's name contains.
func address(path, options string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + options
}

func (s *Store) open() (err error) {
	path := filepath.Join(s.dir, databaseName)
	if s.write, err = sql.Open("sqlite", address(path, pragmas+"&_txlock=immediate")); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if s.reads, err = sql.Open("sqlite", address(path, pragmas)); err != nil {
		return err
	}
	s.reads.SetMaxIdleConns(32) // otherwise many readers would each open the file again
	if _, err := Migrate(context.Background(), s.write, path); err != nil {
		return err
	}
	if s.tail, err = s.readTail(context.Background()); err != nil {
		return err
	}
	if s.view, err = openView(s.dir); err != nil {
		return err
	}
	for stmt, text := range map[**sql.Stmt]string{
		&s.addEvent:  "INSERT INTO event (seq, gap, tenant, at, kind, key, event, facts) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		&s.addSample: "INSERT INTO sample (seq, gap, tenant, at, kind, key, event) VALUES (?, ?, ?, ?, ?, ?, ?)",
		&s.addEntry: `INSERT INTO posting (event, line, tenant, job, currency, source, target, micros, picos, hash, rest)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		&s.addPart: "INSERT OR REPLACE INTO snapshot_part (seq, part, bytes) VALUES (?, ?, ?)",
		&s.addMeta: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
	} {
		if *stmt, err = s.write.Prepare(text); err != nil {
			return err
		}
	}
	s.seen, err = s.reads.Prepare(`SELECT key, min(seq) FROM (
		SELECT key, seq FROM event WHERE tenant = ?1 AND key <> '' AND key IN (SELECT value FROM json_each(?2))
		UNION ALL SELECT key, seq FROM sample WHERE tenant = ?1 AND key <> '' AND key IN (SELECT value FROM json_each(?2))
	) GROUP BY key`)
	return err
}

// Close closes the database and releases the folder.
func (s *Store) Close() error {
	errs := []error{s.view.close()}
	for _, db := range []*sql.DB{s.reads, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(append(errs, freeLock(s.lock))...)
}

// failed adds that the folder caused the error, as in most failures.
func (s *Store) failed(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_FULL {
		return fmt.Errorf("write to the database in %s: %w: %w: make room on its disk", s.dir, err, store.ErrFull)
	}
	return fmt.Errorf("write to the database in %s: %w: is its disk full or read-only?", s.dir, err)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	gaps, next, err := s.tail.Follow(records, holes)
	if err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(err)
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	w := writer{s, tx.StmtContext(ctx, s.addEvent), tx.StmtContext(ctx, s.addSample), tx.StmtContext(ctx, s.addEntry)}
	for i := range records {
		if err := w.record(ctx, &records[i], gaps[i]); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return s.failed(err)
	}
	s.tail = next
	return nil
}

// writer writes within a transaction.
type writer struct {
	s                    *Store
	event, sample, entry *sql.Stmt
}

func (w writer) record(ctx context.Context, r *store.Record, gap int64) error {
	row := []any{int64(r.Seq), gap, r.Tenant, r.At.UnixNano(), r.Kind, r.Key, layout.Shorten(r)}
	stmt := w.sample
	if !r.Sample {
		stmt, row = w.event, append(row, string(r.Facts))
	}
	if _, err := stmt.ExecContext(ctx, row...); err != nil {
		return w.s.failed(err)
	}
	for i := range r.Postings {
		p := &r.Postings[i]
		micros, picos, ok := p.Amount.Micros()
		if !ok {
			return fmt.Errorf("append event %d: amount %v does not fit the database", r.Seq, p.Amount)
		}
		if _, err := w.entry.ExecContext(ctx, int64(p.Event), p.Line, p.Owner.Tenant, p.Owner.Job, string(p.Currency),
			string(p.From), string(p.To), micros, picos, p.Hash[:], layout.Pack(p)); err != nil {
			return w.s.failed(err)
		}
	}
	return nil
}

// DropSamples implements Store.
func (s *Store) DropSamples(ctx context.Context, upTo uint64) (dropped int, err error) {
	for some := int64(layout.Slice); some == layout.Slice; dropped += int(some) {
		if err := ctx.Err(); err != nil {
			return dropped, fmt.Errorf("drop samples: %w", err)
		}
		tx, err := s.write.BeginTx(ctx, nil)
		if err != nil {
			return dropped, s.failed(err)
		}
		some, err = dropSlice(ctx, tx, upTo)
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			_ = tx.Rollback() // no-op after Commit
			if errors.Is(err, store.ErrNeeded) {
				return dropped, err
			}
			return dropped, s.failed(err)
		}
	}
	return dropped, nil
}

func dropSlice(ctx context.Context, tx *sql.Tx, upTo uint64) (dropped int64, err error) {
	var older, end int64
	err = tx.QueryRowContext(ctx, `SELECT (SELECT coalesce(min(seq), 0) FROM snapshot),
		max((SELECT coalesce(max(seq), 0) FROM event), (SELECT coalesce(max(seq), 0) FROM sample))`).Scan(&older, &end)
	if err == nil {
		err = layout.Needed(upTo, uint64(older))
	}
	if err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, "DELETE FROM sample WHERE seq IN (SELECT seq FROM sample WHERE seq <= ? AND "+
		"seq < ? ORDER BY seq LIMIT ?)", int64(upTo), end, layout.Slice)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// PutMeta implements Store. An empty value also overwrites the bytes of the value before it, which may be a name that
// is erased. Samples of the log are deleted in bulk, without overwriting.
func (s *Store) PutMeta(ctx context.Context, key, value string) error {
	if value == "" {
		return s.eraseMeta(ctx, key)
	}
	if _, err := s.addMeta.ExecContext(ctx, key, value); err != nil {
		return s.failed(err)
	}
	return nil
}

// eraseMeta replaces a value by an empty one and overwrites its bytes.
func (s *Store) eraseMeta(ctx context.Context, key string) error {
	c, err := s.write.Conn(ctx)
	if err != nil {
		return s.failed(err)
	}
	defer func() { _ = c.Close() }() // back to the pool
	if _, err := c.ExecContext(ctx, "PRAGMA secure_delete = ON"); err != nil {
		return s.failed(err)
	}
	_, err = c.ExecContext(ctx, "INSERT OR REPLACE INTO meta (key, value) VALUES (?, '')", key)
	_, back := c.ExecContext(context.WithoutCancel(ctx), "PRAGMA secure_delete = FAST")
	if err = errors.Join(err, back); err != nil {
		return s.failed(err)
	}
	return nil
}

// A server holds the folder's lock from Open to Close, so whoever has it open leads.

// Lead implements Replica.
func (s *Store) Lead(context.Context) error { return nil }

// TryLead implements Replica.
func (s *Store) TryLead(context.Context) error { return nil }

// Epoch implements Replica.
func (s *Store) Epoch() uint64 { return 0 }

// Leads implements Replica.
func (s *Store) Leads() bool { return true }

// Deposed implements Replica.
func (s *Store) Deposed() <-chan struct{} { return nil }

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"modernc.org/sqlite" // and the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite is a Store in one folder: scrimp.db, logs/, and a lock that one server holds.
type SQLite struct {
	logFiles
	dir   string
	lock  *os.File
	write *sql.DB // one connection
	reads *sql.DB

	mu       sync.Mutex
	next     uint64 // sequence number that the log wants next
	addEvent *sql.Stmt
	addEntry *sql.Stmt
	addPart  *sql.Stmt
	addMeta  *sql.Stmt
	seen     *sql.Stmt // reads
}

// databaseName is the database's file within the folder.
const databaseName = "scrimp.db"

// pragmas are what each connection begins with. FULL makes a commit durable
// when it returns, also over a loss of power.
const pragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(ON)"

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
	s := &SQLite{logFiles: logFiles{dir}, dir: dir, lock: lock}
	if err := s.open(); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open %s: %w", filepath.Join(dir, databaseName), err)
	}
	return s, nil
}

func (s *SQLite) open() (err error) {
	path := filepath.Join(s.dir, databaseName)
	if s.write, err = sql.Open("sqlite", "file:"+path+pragmas+"&_txlock=immediate"); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if s.reads, err = sql.Open("sqlite", "file:"+path+pragmas); err != nil {
		return err
	}
	s.reads.SetMaxIdleConns(32) // of many readers each would open the file anew
	if _, err := Migrate(context.Background(), s.write, path); err != nil {
		return err
	}
	end, err := s.End(context.Background())
	if err != nil {
		return err
	}
	s.next = end + 1
	for stmt, text := range map[**sql.Stmt]string{
		&s.addEvent: "INSERT INTO event (seq, tenant, at, kind, key, event, decisions, actions) VALUES (?, ?, ?, ?, nullif(?, ''), ?, nullif(?, ''), nullif(?, ''))",
		&s.addEntry: "INSERT INTO posting (event, line, tenant, job, currency, source, target, micros, picos, posting) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		&s.addPart:  "INSERT OR REPLACE INTO snapshot_part (seq, part, bytes) VALUES (?, ?, ?)",
		&s.addMeta:  "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
	} {
		if *stmt, err = s.write.Prepare(text); err != nil {
			return err
		}
	}
	s.seen, err = s.reads.Prepare("SELECT key, min(seq) FROM event WHERE tenant = ? AND key IN (SELECT value FROM json_each(?)) GROUP BY key")
	return err
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

// failed names the folder, since most failures are its.
func (s *SQLite) failed(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_FULL {
		return fmt.Errorf("write to the database in %s: %w: %w: make room on its disk", s.dir, err, ErrFull)
	}
	return fmt.Errorf("write to the database in %s: %w: is its disk full or read-only?", s.dir, err)
}

// Append implements Store.
func (s *SQLite) Append(ctx context.Context, records []Record) error {
	if len(records) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := follows(records, s.next); err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(err)
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	addEvent, addEntry := tx.StmtContext(ctx, s.addEvent), tx.StmtContext(ctx, s.addEntry)
	for _, r := range records {
		if _, err := addEvent.ExecContext(ctx, int64(r.Seq), r.Tenant, r.At.UnixNano(), r.Kind, r.Key, string(r.Event), string(r.Decisions), string(r.Actions)); err != nil {
			return s.failed(err)
		}
		for _, p := range r.Postings {
			text, err := json.Marshal(p)
			if err != nil {
				return fmt.Errorf("append event %d: %w", r.Seq, err)
			}
			micros, picos, ok := p.Amount.Micros()
			if !ok {
				return fmt.Errorf("append event %d: amount %v does not fit the database", r.Seq, p.Amount)
			}
			if _, err := addEntry.ExecContext(ctx, int64(p.Event), p.Line, p.Owner.Tenant, p.Owner.Job, string(p.Currency), string(p.From), string(p.To), micros, picos, string(text)); err != nil {
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

// follows checks that records continue a log that wants next, and that each
// posting says which record it belongs to.
func follows(records []Record, next uint64) error {
	for i, r := range records {
		if r.Seq != next+uint64(i) {
			return fmt.Errorf("append event %d: the log wants %d: %w", r.Seq, next+uint64(i), ErrConflict)
		}
		for _, p := range r.Postings {
			if p.Event != r.Seq {
				return fmt.Errorf("append event %d: a posting of event %d is among its own", r.Seq, p.Event)
			}
		}
	}
	return nil
}

// PutMeta implements Store.
func (s *SQLite) PutMeta(ctx context.Context, key, value string) error {
	if _, err := s.addMeta.ExecContext(ctx, key, value); err != nil {
		return s.failed(err)
	}
	return nil
}

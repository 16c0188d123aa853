package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// The view's tables are in their own file: an append never waits for them, and the log's file does not grow by what
// it already contains.

// viewName is that file in the folder. It may be deleted while no server runs.
const viewName = "view.db"

// viewForm is the version of its tables. A file of another version is rebuilt.
const viewForm = 1

// viewPragmas make commits without waiting for the disk: what a power loss undoes is read from the log again.
const viewPragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)"

const viewTables = `
CREATE TABLE mark (
  one  INTEGER PRIMARY KEY CHECK (one = 1),
  seq  INTEGER NOT NULL, -- read up to here
  kept INTEGER NOT NULL, -- the last event up to there that is no sample
  sum  TEXT NOT NULL     -- of that event's text
) STRICT;
INSERT INTO mark VALUES (1, 0, 0, '');
CREATE TABLE job (
  name   TEXT PRIMARY KEY,
  events BLOB NOT NULL   -- numbers of the events about it
) STRICT, WITHOUT ROWID;
CREATE TABLE archived (
  name      TEXT PRIMARY KEY,
  seq       INTEGER NOT NULL, -- the event whose facts have its record
  submitted INTEGER NOT NULL, -- the order of its submission
  state     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX archived_submitted ON archived (submitted, state, seq);
`

// sqliteView is the view's database.
type sqliteView struct{ write, reads *sql.DB }

// openView opens the file, or creates it at first use or if it cannot be read.
func openView(dir string) (v sqliteView, err error) {
	path := filepath.Join(dir, viewName)
	if v, err = useView(path); err == nil {
		return v, nil
	}
	_ = v.close()
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return v, fmt.Errorf("rebuild %s: %w", viewName, err)
		}
	}
	return useView(path)
}

// errViewForm is returned for a file that another release created.
var errViewForm = errors.New("its tables have another form")

func useView(path string) (v sqliteView, err error) {
	if v.write, err = sql.Open("sqlite", address(path, viewPragmas+"&_txlock=immediate")); err != nil {
		return v, err
	}
	v.write.SetMaxOpenConns(1)
	if v.reads, err = sql.Open("sqlite", address(path, viewPragmas)); err != nil {
		return v, err
	}
	v.reads.SetMaxIdleConns(8)
	var form, tables int
	err = v.write.QueryRow("SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version").
		Scan(&form, &tables)
	switch {
	case err != nil:
		return v, err
	case tables == 0:
		_, err = v.write.Exec(fmt.Sprintf("BEGIN; %s; PRAGMA user_version = %d; COMMIT", viewTables, viewForm))
	case form != viewForm:
		err = errViewForm
	default:
		_, err = v.mark(context.Background())
	}
	return v, err
}

func (v sqliteView) close() error {
	var errs []error
	for _, db := range []*sql.DB{v.reads, v.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

func (v sqliteView) mark(ctx context.Context) (m ViewMark, err error) {
	var seq, kept int64
	err = v.write.QueryRowContext(ctx, "SELECT seq, kept, sum FROM mark").Scan(&seq, &kept, &m.Sum)
	m.Seq, m.Kept = uint64(seq), uint64(kept)
	return m, err
}

// ViewMark implements ViewStore.
func (s *SQLite) ViewMark(ctx context.Context) (ViewMark, error) {
	m, err := s.view.mark(ctx)
	if err != nil {
		return m, fmt.Errorf("read the view of the log: %w", err)
	}
	return m, nil
}

// MoveView implements ViewStore.
func (s *SQLite) MoveView(ctx context.Context, from, to ViewMark, rows ViewRows) error {
	return s.changeView(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "UPDATE mark SET seq = ?, kept = ?, sum = ? WHERE seq = ? AND kept = ? AND sum = ?",
			int64(to.Seq), int64(to.Kept), to.Sum, int64(from.Seq), int64(from.Kept), from.Sum)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, errViewMoved())
		}
		add, err := tx.PrepareContext(ctx, "INSERT INTO job (name, events) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET "+
			"events = CAST(events || excluded.events AS BLOB)")
		if err != nil {
			return err
		}
		defer func() { _ = add.Close() }()
		for _, job := range slices.Sorted(maps.Keys(rows.Events)) {
			if _, err := add.ExecContext(ctx, job, rows.Events[job]); err != nil {
				return err
			}
		}
		return archiveRows(ctx, tx, rows.Archived)
	})
}

func archiveRows(ctx context.Context, tx *sql.Tx, rows map[string]ArchivedRow) error {
	for _, job := range slices.Sorted(maps.Keys(rows)) {
		var err error
		if r := rows[job]; r.Seq == 0 {
			_, err = tx.ExecContext(ctx, "DELETE FROM archived WHERE name = ?", job)
		} else {
			_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO archived (name, seq, submitted, state) VALUES (?, ?, ?, ?)",
				job, int64(r.Seq), int64(r.Order), r.State)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ClearView implements ViewStore.
func (s *SQLite) ClearView(ctx context.Context) error {
	return s.changeView(ctx, func(tx *sql.Tx) error {
		for _, text := range []string{"DELETE FROM job", "DELETE FROM archived",
			"UPDATE mark SET seq = 0, kept = 0, sum = ''"} {
			if _, err := tx.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// changeView calls do in a transaction.
func (s *SQLite) changeView(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.view.write.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(err)
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	if err := do(tx); errors.Is(err, ErrConflict) {
		return err
	} else if err != nil {
		return s.failed(err)
	}
	if err := tx.Commit(); err != nil {
		return s.failed(err)
	}
	return nil
}

// JobEvents implements ViewStore.
func (s *SQLite) JobEvents(ctx context.Context, job string) (events []byte, err error) {
	err = s.view.reads.QueryRowContext(ctx, "SELECT events FROM job WHERE name = ?", job).Scan(&events)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the events of %s: %w", job, err)
	}
	return events, nil
}

// Archived implements ViewStore.
func (s *SQLite) Archived(ctx context.Context, jobs []string) (map[string]ArchivedRow, error) {
	list, err := json.Marshal(jobs)
	if err != nil {
		return nil, fmt.Errorf("look for archived jobs: %w", err)
	}
	rows, err := s.view.reads.QueryContext(ctx, "SELECT seq, submitted, state, name FROM archived WHERE name IN "+
		"(SELECT value FROM json_each(?))", string(list))
	if err != nil {
		return nil, fmt.Errorf("look for archived jobs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	found := map[string]ArchivedRow{}
	for rows.Next() {
		var name string
		r, err := scanArchived(rows.Scan, &name)
		if err != nil {
			return nil, fmt.Errorf("look for archived jobs: %w", err)
		}
		found[name] = r
	}
	return found, rows.Err()
}

// scanArchived reads a row of either database; more holds the destinations of further columns.
func scanArchived(scan func(...any) error, more ...any) (r ArchivedRow, err error) {
	var seq, order int64
	err = scan(append([]any{&seq, &order, &r.State}, more...)...)
	r.Seq, r.Order = uint64(seq), uint64(order)
	return r, err
}

// ArchivedPage implements ViewStore.
func (s *SQLite) ArchivedPage(ctx context.Context, p ArchivedPage) (list []ArchivedRow, err error) {
	rows, err := s.view.reads.QueryContext(ctx, p.query("archived", func(n int) string { return fmt.Sprint("?", n) }),
		int64(p.After), p.end(), p.State, p.Limit)
	if err != nil {
		return nil, fmt.Errorf("list archived jobs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		r, err := scanArchived(rows.Scan, &name)
		r.Name = name
		if err != nil {
			return nil, fmt.Errorf("list archived jobs: %w", err)
		}
		list = append(list, r)
	}
	if p.Backwards {
		slices.Reverse(list)
	}
	return list, rows.Err()
}

// RecordsAt implements ViewStore.
func (s *SQLite) RecordsAt(ctx context.Context, numbers []uint64) ([]Record, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return s.records(ctx, numbers[0]-1, selectRecords("seq IN (SELECT value FROM json_each(?1))"), string(list),
		len(numbers))
}

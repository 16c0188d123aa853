package sqlite

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

	"scrimp/internal/store"
	"scrimp/internal/store/layout"
)

// Projections are in their own file: an append never waits for them, and the log's file does not grow by what
// it already contains.

// viewName is that file in the folder. It may be deleted while no server runs.
const viewName = "view.db"

// viewForm is the version of its tables. A file of another version is rebuilt.
const viewForm = 2

// viewPragmas make commits without waiting for the disk: what a power loss undoes is read from the log again.
const viewPragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)"

// viewWrites gives the writer 16 MiB of pages and copies the journal back after as many: a rebuild touches pages at
// random.
const viewWrites = viewPragmas + "&_txlock=immediate&_pragma=cache_size(-16384)&_pragma=wal_autocheckpoint(4000)"

const viewTables = `
CREATE TABLE projection (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  seq  INTEGER NOT NULL, -- read up to here
  kept INTEGER NOT NULL, -- the last event up to there that is not a sample
  sum  TEXT NOT NULL     -- of that event's text
) STRICT;
CREATE TABLE projection_row (
  projection INTEGER NOT NULL,
  key        TEXT NOT NULL,
  value      BLOB NOT NULL,
  PRIMARY KEY (projection, key)
) STRICT, WITHOUT ROWID;
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
	if v.write, err = sql.Open("sqlite", address(path, viewWrites)); err != nil {
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
		_, err = v.marks(context.Background())
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

func (v sqliteView) marks(ctx context.Context) (map[string]store.Mark, error) {
	rows, err := v.write.QueryContext(ctx, "SELECT name, seq, kept, sum FROM projection")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	marks := map[string]store.Mark{}
	for rows.Next() {
		var name string
		var m store.Mark
		if err := layout.ScanMark(&m, rows.Scan, &name); err != nil {
			return nil, err
		}
		marks[name] = m
	}
	return marks, rows.Err()
}

// Marks implements ProjectionStore.
func (s *Store) Marks(ctx context.Context) (map[string]store.Mark, error) {
	marks, err := s.view.marks(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the marks of the projections: %w", err)
	}
	return marks, nil
}

// Project implements ProjectionStore.
func (s *Store) Project(ctx context.Context, from, to store.Mark, changes map[string]map[string]store.Change) error {
	return s.changeView(ctx, func(tx *sql.Tx) error {
		for _, name := range slices.Sorted(maps.Keys(changes)) {
			id, err := moveMark(ctx, tx, name, from, to)
			if err == nil {
				err = changeRows(ctx, tx, id, changes[name])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// moveMark moves the mark of a projection and returns its id.
func moveMark(ctx context.Context, tx *sql.Tx, name string, from, to store.Mark) (id int64, err error) {
	var row *sql.Row
	if from == (store.Mark{}) {
		row = tx.QueryRowContext(ctx, "INSERT INTO projection (name, seq, kept, sum) VALUES (?, ?, ?, ?) "+
			"ON CONFLICT DO NOTHING RETURNING id", name, int64(to.Seq), int64(to.Kept), to.Sum)
	} else {
		row = tx.QueryRowContext(ctx, "UPDATE projection SET seq = ?, kept = ?, sum = ? WHERE name = ? AND seq = ? AND "+
			"kept = ? AND sum = ? RETURNING id", int64(to.Seq), int64(to.Kept), to.Sum, name, int64(from.Seq),
			int64(from.Kept), from.Sum)
	}
	if err = row.Scan(&id); errors.Is(err, sql.ErrNoRows) {
		return 0, layout.ErrMoved(name)
	}
	return id, err
}

// changeRows changes the rows of the projection with that id.
func changeRows(ctx context.Context, tx *sql.Tx, id int64, changes map[string]store.Change) error {
	texts := map[string]string{
		"put": "INSERT OR REPLACE INTO projection_row (projection, key, value) VALUES (?, ?, ?)",
		"append": "INSERT INTO projection_row (projection, key, value) VALUES (?, ?, ?) ON CONFLICT (projection, key) " +
			"DO UPDATE SET value = CAST(value || excluded.value AS BLOB)",
		"delete": "DELETE FROM projection_row WHERE projection = ? AND key = ?",
	}
	statements := map[string]*sql.Stmt{}
	defer func() {
		for _, s := range statements {
			_ = s.Close()
		}
	}()
	for _, key := range slices.Sorted(maps.Keys(changes)) { // in the order of the table
		c, kind := changes[key], "put"
		args := []any{id, key, c.Value}
		switch {
		case c.Delete:
			kind, args = "delete", args[:2]
		case c.Append:
			kind = "append"
		}
		if c.Value == nil && !c.Delete {
			args[2] = []byte{}
		}
		if statements[kind] == nil {
			s, err := tx.PrepareContext(ctx, texts[kind])
			if err != nil {
				return err
			}
			statements[kind] = s
		}
		if _, err := statements[kind].ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// DropProjection implements ProjectionStore.
func (s *Store) DropProjection(ctx context.Context, name string) error {
	return s.changeView(ctx, func(tx *sql.Tx) error {
		for _, text := range []string{
			"DELETE FROM projection_row WHERE projection = (SELECT id FROM projection WHERE name = ?)",
			"DELETE FROM projection WHERE name = ?",
		} {
			if _, err := tx.ExecContext(ctx, text, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// changeView calls do in a transaction.
func (s *Store) changeView(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.view.write.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(err)
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	if err := do(tx); errors.Is(err, store.ErrConflict) {
		return err
	} else if err != nil {
		return s.failed(err)
	}
	if err := tx.Commit(); err != nil {
		return s.failed(err)
	}
	return nil
}

// Rows implements ProjectionStore.
func (s *Store) Rows(ctx context.Context, projection string, keys []string) (map[string][]byte, error) {
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, fmt.Errorf("read rows of %s: %w", projection, err)
	}
	rows, err := s.view.query(ctx, projection, "SELECT key, value FROM projection_row WHERE projection = "+
		"(SELECT id FROM projection WHERE name = ?1) AND key IN (SELECT value FROM json_each(?2))", projection,
		string(list))
	found := map[string][]byte{}
	for _, r := range rows {
		found[r.Key] = r.Value
	}
	return found, err
}

// RowRange implements ProjectionStore.
func (s *Store) RowRange(ctx context.Context, projection string, r store.Range) ([]store.Row, error) {
	text, args := layout.RangeQuery(r, "projection_row", func(n int) string { return fmt.Sprint("?", n) })
	rows, err := s.view.query(ctx, projection, text, append([]any{projection}, args...)...)
	if r.Backwards {
		slices.Reverse(rows)
	}
	return rows, err
}

func (v sqliteView) query(ctx context.Context, projection, text string, args ...any) (list []store.Row, err error) {
	rows, err := v.reads.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("read rows of %s: %w", projection, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r store.Row
		if err := rows.Scan(&r.Key, &r.Value); err != nil {
			return nil, fmt.Errorf("read rows of %s: %w", projection, err)
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read rows of %s: %w", projection, err)
	}
	return list, nil
}

// RecordsAt implements ProjectionStore.
func (s *Store) RecordsAt(ctx context.Context, numbers []uint64) ([]store.Record, error) {
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

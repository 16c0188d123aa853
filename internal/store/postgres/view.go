//go:build !local

package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"scrimp/internal/store"
	"scrimp/internal/store/layout"
)

// Marks implements ProjectionStore.
func (s *Store) Marks(ctx context.Context) (map[string]store.Mark, error) {
	rows, err := s.pool.Query(ctx, "SELECT name, seq, kept, sum FROM projection")
	if err != nil {
		return nil, fmt.Errorf("read the marks of the projections: %w", err)
	}
	marks := map[string]store.Mark{}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m store.Mark, err error) {
		var name string
		err = layout.ScanMark(&m, row.Scan, &name)
		marks[name] = m
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the marks of the projections: %w", err)
	}
	return marks, nil
}

// Project implements ProjectionStore. It does not need the lead: the rows follow from the log, and if two servers have
// read the same part of it, one of them finds that a mark has moved.
func (s *Store) Project(ctx context.Context, from, to store.Mark, changes map[string]map[string]store.Change) error {
	return s.changeView(ctx, func(tx pgx.Tx) error {
		for _, name := range slices.Sorted(maps.Keys(changes)) { // so that two servers lock rows in the same order
			id, err := movePgMark(ctx, tx, name, from, to)
			if err == nil {
				err = changePgRows(ctx, tx, id, changes[name])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// movePgMark moves the mark of a projection and returns its id.
func movePgMark(ctx context.Context, tx pgx.Tx, name string, from, to store.Mark) (id int32, err error) {
	var row pgx.Row
	if from == (store.Mark{}) {
		row = tx.QueryRow(ctx, "INSERT INTO projection (name, seq, kept, sum) VALUES ($1, $2, $3, $4) "+
			"ON CONFLICT DO NOTHING RETURNING id", name, int64(to.Seq), int64(to.Kept), to.Sum)
	} else {
		row = tx.QueryRow(ctx, "UPDATE projection SET seq = $1, kept = $2, sum = $3 WHERE name = $4 AND seq = $5 AND "+
			"kept = $6 AND sum = $7 RETURNING id", int64(to.Seq), int64(to.Kept), to.Sum, name, int64(from.Seq),
			int64(from.Kept), from.Sum)
	}
	if err = row.Scan(&id); errors.Is(err, pgx.ErrNoRows) {
		return 0, layout.ErrMoved(name)
	}
	return id, err
}

// changePgRows changes the rows of the projection with that id.
func changePgRows(ctx context.Context, tx pgx.Tx, id int32, changes map[string]store.Change) error {
	var gone []string
	var keys [2][]string // put, append
	var values [2][][]byte
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		c, kind := changes[key], 0
		if c.Delete {
			gone = append(gone, key)
			continue
		}
		if c.Append {
			kind = 1
		}
		if c.Value == nil {
			c.Value = []byte{}
		}
		keys[kind], values[kind] = append(keys[kind], key), append(values[kind], c.Value)
	}
	if len(gone) > 0 {
		if _, err := tx.Exec(ctx, "DELETE FROM projection_row WHERE projection = $1 AND key = ANY ($2)", id,
			gone); err != nil {
			return err
		}
	}
	for kind, value := range []string{"excluded.value", "projection_row.value || excluded.value"} {
		if len(keys[kind]) == 0 {
			continue
		}
		if _, err := tx.Exec(ctx, "INSERT INTO projection_row (projection, key, value) SELECT $1, * FROM "+
			"unnest($2::text[], $3::bytea[]) ON CONFLICT (projection, key) DO UPDATE SET value = "+value, id, keys[kind],
			values[kind]); err != nil {
			return err
		}
	}
	return nil
}

// DropProjection implements ProjectionStore.
func (s *Store) DropProjection(ctx context.Context, name string) error {
	return s.changeView(ctx, func(tx pgx.Tx) error {
		var id int32
		err := tx.QueryRow(ctx, "DELETE FROM projection WHERE name = $1 RETURNING id", name).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM projection_row WHERE projection = $1", id)
		}
		return err
	})
}

// changeView calls do in a transaction whose commit does not wait for the disk: what a crash undoes is read from the
// log again.
func (s *Store) changeView(ctx context.Context, do func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
			return err
		}
		return do(tx)
	})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return s.failed(err)
	}
	return err
}

// Rows implements ProjectionStore.
func (s *Store) Rows(ctx context.Context, projection string, keys []string) (map[string][]byte, error) {
	rows, err := s.viewRows(ctx, projection, "SELECT key, value FROM projection_row WHERE projection = "+
		"(SELECT id FROM projection WHERE name = $1) AND key = ANY ($2)", projection, keys)
	found := map[string][]byte{}
	for _, r := range rows {
		found[r.Key] = r.Value
	}
	return found, err
}

// RowRange implements ProjectionStore.
func (s *Store) RowRange(ctx context.Context, projection string, r store.Range) ([]store.Row, error) {
	text, args := layout.RangeQuery(r, "projection_row", func(n int) string { return fmt.Sprint("$", n) })
	rows, err := s.viewRows(ctx, projection, text, append([]any{projection}, args...)...)
	if r.Backwards {
		slices.Reverse(rows)
	}
	return rows, err
}

func (s *Store) viewRows(ctx context.Context, projection, text string, args ...any) ([]store.Row, error) {
	rows, err := s.pool.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("read rows of %s: %w", projection, err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r store.Row, err error) {
		err = row.Scan(&r.Key, &r.Value)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("read rows of %s: %w", projection, err)
	}
	return list, nil
}

// RecordsAt implements ProjectionStore.
func (s *Store) RecordsAt(ctx context.Context, numbers []uint64) ([]store.Record, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	return s.records(ctx, numbers[0]-1, pgRecords("seq = ANY ($1)"), layout.Signed(numbers), len(numbers))
}

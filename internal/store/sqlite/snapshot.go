package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"scrimp/internal/store"
	"scrimp/internal/store/layout"
)

// SaveParts implements Store.
func (s *Store) SaveParts(ctx context.Context, seq uint64, parts map[int]json.RawMessage) error {
	return s.changes(ctx, func(tx *sql.Tx) error {
		for n, text := range parts {
			if _, err := tx.StmtContext(ctx, s.addPart).ExecContext(ctx, int64(seq), n, []byte(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// changes calls do in a transaction.
func (s *Store) changes(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(err)
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	if err := do(tx); err != nil {
		return s.failed(err)
	}
	if err := tx.Commit(); err != nil {
		return s.failed(err)
	}
	return nil
}

// SaveSnapshot implements Store. It writes the pieces of a large state one by one, so that appends continue between
// them.
func (s *Store) SaveSnapshot(ctx context.Context, snap store.Snapshot) error {
	var base []byte
	if snap.Base > 0 {
		if err := s.reads.QueryRowContext(ctx, "SELECT bytes FROM snapshot_part WHERE seq = ? AND part = ?", int64(snap.Base),
			layout.SourcesPart).Scan(&base); err != nil {
			return fmt.Errorf("save snapshot %d: read the one at %d: %w", snap.Seq, snap.Base, err)
		}
	}
	earlier, err := layout.ReadSources(base)
	if err != nil {
		return fmt.Errorf("save snapshot %d: read the one at %d: %w", snap.Seq, snap.Base, err)
	}
	from, err := layout.Sources(snap, earlier)
	if err != nil {
		return err
	}
	pieces := layout.Cut(snap, from)
	for n, text := range pieces {
		if _, err := s.addPart.ExecContext(ctx, int64(snap.Seq), n, text); err != nil {
			return s.failed(err)
		}
	}
	return s.changes(ctx, func(tx *sql.Tx) error {
		if snap.Parts == 0 { // remains of a longer one that was cut short
			if _, err := tx.ExecContext(ctx, "DELETE FROM snapshot_part WHERE seq = ? AND (part >= ? OR part < 0)",
				int64(snap.Seq), len(pieces)); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO snapshot (seq, version) VALUES (?, ?)", int64(snap.Seq),
			snap.Version); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq "+
			"DESC LIMIT 2)"); err != nil {
			return err
		}
		return s.tidy(ctx, tx)
	})
}

// tidy drops the pieces that no snapshot needs.
func (s *Store) tidy(ctx context.Context, tx *sql.Tx) error {
	snapshots := map[uint64][]uint64{}
	if err := each(ctx, tx, "SELECT s.seq, p.bytes FROM snapshot s LEFT JOIN snapshot_part p ON p.seq = s.seq AND "+
		"p.part = -1", func(seq int64, text []byte) error {
		from, err := layout.ReadSources(text)
		snapshots[uint64(seq)] = from
		return err
	}); err != nil {
		return err
	}
	var pieces []layout.Piece
	if err := each(ctx, tx, "SELECT seq, part FROM snapshot_part", func(seq, part int64) error {
		pieces = append(pieces, layout.Piece{Seq: uint64(seq), Part: int(part)})
		return nil
	}); err != nil {
		return err
	}
	for _, k := range layout.Unused(pieces, snapshots) {
		if _, err := tx.ExecContext(ctx, "DELETE FROM snapshot_part WHERE seq = ? AND part = ?", int64(k.Seq),
			k.Part); err != nil {
			return err
		}
	}
	return nil
}

// each calls f with every row of a query with two columns.
func each[A, B any](ctx context.Context, tx *sql.Tx, query string, f func(A, B) error) error {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var a A
		var b B
		if err := rows.Scan(&a, &b); err != nil {
			return err
		}
		if err := f(a, b); err != nil {
			return err
		}
	}
	return rows.Err()
}

// LatestSnapshot implements Store.
func (s *Store) LatestSnapshot(ctx context.Context) (store.Snapshot, bool, error) {
	var snap store.Snapshot
	var seq int64
	var from []byte
	tx, err := s.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // a newer snapshot may drop this one meanwhile
	if err != nil {
		return snap, false, fmt.Errorf("read snapshot: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // read only
	err = tx.QueryRowContext(ctx, "SELECT s.seq, s.version, p.bytes FROM snapshot s LEFT JOIN snapshot_part p ON "+
		"p.seq = s.seq AND p.part = -1 ORDER BY s.seq DESC LIMIT 1").Scan(&seq, &snap.Version, &from)
	if errors.Is(err, sql.ErrNoRows) {
		return snap, false, nil
	}
	if err == nil {
		snap.From, err = layout.ReadSources(from)
	}
	if err != nil {
		return snap, false, fmt.Errorf("read snapshot: %w", err)
	}
	snap.Seq, snap.Parts = uint64(seq), len(snap.From)
	where := "seq = ? ORDER BY part"
	if snap.Parts > 0 {
		where = "seq = ? AND part < -1 ORDER BY part DESC"
	}
	var size int64
	if err := tx.QueryRowContext(ctx, "SELECT coalesce(sum(length(bytes)), 0) FROM (SELECT bytes FROM snapshot_part "+
		"WHERE "+where+")", seq).Scan(&size); err != nil {
		return snap, false, fmt.Errorf("read snapshot: %w", err)
	}
	snap.State = make([]byte, 0, size)
	rows, err := tx.QueryContext(ctx, "SELECT bytes FROM snapshot_part WHERE "+where, seq) //nolint:gosec // where is ours
	if err != nil {
		return snap, false, fmt.Errorf("read snapshot: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var part sql.RawBytes
		if err := rows.Scan(&part); err != nil {
			return snap, false, fmt.Errorf("read snapshot: %w", err)
		}
		snap.State = append(snap.State, part...)
	}
	if err := rows.Err(); err != nil {
		return snap, false, fmt.Errorf("read snapshot: %w", err)
	}
	return snap, true, nil
}

// SnapshotParts implements Store.
func (s *Store) SnapshotParts(ctx context.Context, snap store.Snapshot) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		from, err := json.Marshal(snap.From)
		if err != nil {
			yield(nil, fmt.Errorf("read snapshot: %w", err))
			return
		}
		rows, err := s.reads.QueryContext(ctx, "SELECT w.key, p.bytes FROM json_each(?) w CROSS JOIN snapshot_part p ON "+
			"p.seq = w.value AND p.part = w.key", /* in the order of the list: to sort would copy them all */ string(from))
		if err != nil {
			yield(nil, fmt.Errorf("read snapshot: %w", err))
			return
		}
		defer func() { _ = rows.Close() }()
		n := 0
		for ; rows.Next(); n++ {
			var key int
			var part []byte
			if err := rows.Scan(&key, &part); err != nil {
				yield(nil, fmt.Errorf("read snapshot: %w", err))
				return
			}
			if key != n {
				break
			}
			if !yield(part, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, fmt.Errorf("read snapshot: %w", err))
		} else if n < snap.Parts {
			yield(nil, fmt.Errorf("read snapshot %d: %w", snap.Seq, store.ErrGone))
		}
	}
}

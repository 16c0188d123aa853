//go:build !local

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"scrimp/internal/store"
	"scrimp/internal/store/layout"
)

const addPart = "INSERT INTO snapshot_part (seq, part, bytes) VALUES ($1, $2, $3) " +
	"ON CONFLICT (seq, part) DO UPDATE SET bytes = excluded.bytes"

// SaveParts implements Store.
func (s *Store) SaveParts(ctx context.Context, seq uint64, parts map[int]json.RawMessage) error {
	return s.fencedLate(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		for n, text := range parts {
			b.Queue(addPart, int64(seq), n, []byte(text))
		}
		return tx.SendBatch(ctx, &b).Close()
	})
}

// SaveSnapshot implements Store. It writes the pieces of a large state one by one, so that appends continue between
// them.
func (s *Store) SaveSnapshot(ctx context.Context, snap store.Snapshot) error {
	var base []byte
	if snap.Base > 0 {
		if err := s.pool.QueryRow(ctx, "SELECT bytes FROM snapshot_part WHERE seq = $1 AND part = $2", int64(snap.Base),
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
	seq, pieces := int64(snap.Seq), layout.Cut(snap, from)
	for n, text := range pieces {
		if err := s.fenced(ctx, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, addPart, seq, n, text)
			return err
		}); err != nil {
			return err
		}
	}
	return s.fenced(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if snap.Parts == 0 { // remains of a longer one that was cut short
			if _, err := tx.Exec(ctx, "DELETE FROM snapshot_part WHERE seq = $1 AND (part >= $2 OR part < 0)", seq,
				len(pieces)); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "INSERT INTO snapshot (seq, version) VALUES ($1, $2) ON CONFLICT (seq) DO UPDATE SET "+
			"version = excluded.version", seq, snap.Version); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC "+
			"LIMIT 2)"); err != nil {
			return err
		}
		return tidy(ctx, tx)
	})
}

// tidy drops the pieces that no snapshot needs.
func tidy(ctx context.Context, tx pgx.Tx) error {
	snapshots := map[uint64][]uint64{}
	var seq, part int64
	var text []byte
	rows, err := tx.Query(ctx, "SELECT s.seq, p.bytes FROM snapshot s LEFT JOIN snapshot_part p ON p.seq = s.seq AND "+
		"p.part = -1")
	if err != nil {
		return err
	}
	if _, err := pgx.ForEachRow(rows, []any{&seq, &text}, func() (err error) {
		snapshots[uint64(seq)], err = layout.ReadSources(text)
		return err
	}); err != nil {
		return err
	}
	var pieces []layout.Piece
	if rows, err = tx.Query(ctx, "SELECT seq, part FROM snapshot_part"); err != nil {
		return err
	}
	if _, err := pgx.ForEachRow(rows, []any{&seq, &part}, func() error {
		pieces = append(pieces, layout.Piece{Seq: uint64(seq), Part: int(part)})
		return nil
	}); err != nil {
		return err
	}
	var seqs []int64
	var parts []int32
	for _, k := range layout.Unused(pieces, snapshots) {
		seqs, parts = append(seqs, int64(k.Seq)), append(parts, int32(k.Part))
	}
	if len(seqs) == 0 {
		return nil
	}
	_, err = tx.Exec(ctx, "DELETE FROM snapshot_part p USING unnest($1::bigint[], $2::integer[]) AS d (seq, part) "+
		"WHERE p.seq = d.seq AND p.part = d.part", seqs, parts)
	return err
}

// LatestSnapshot implements Store.
func (s *Store) LatestSnapshot(ctx context.Context) (snap store.Snapshot, ok bool, err error) {
	// A newer snapshot may drop this one meanwhile.
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			var seq int64
			var from []byte
			err := tx.QueryRow(ctx, "SELECT s.seq, s.version, p.bytes FROM snapshot s LEFT JOIN snapshot_part p ON p.seq = "+
				"s.seq AND p.part = -1 ORDER BY s.seq DESC LIMIT 1").Scan(&seq, &snap.Version, &from)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err == nil {
				snap.From, err = layout.ReadSources(from)
			}
			if err != nil {
				return err
			}
			snap.Seq, snap.Parts, ok = uint64(seq), len(snap.From), true
			where := "seq = $1 ORDER BY part"
			if snap.Parts > 0 {
				where = "seq = $1 AND part < -1 ORDER BY part DESC"
			}
			var size int64
			if err := tx.QueryRow(ctx, "SELECT coalesce(sum(length(bytes)), 0) FROM (SELECT bytes FROM snapshot_part WHERE "+
				where+") AS p", seq).Scan(&size); err != nil {
				return err
			}
			snap.State = make([]byte, 0, size)
			rows, err := tx.Query(ctx, "SELECT bytes FROM snapshot_part WHERE "+where, seq)
			if err != nil {
				return err
			}
			var part pgtype.DriverBytes
			_, err = pgx.ForEachRow(rows, []any{&part}, func() error {
				snap.State = append(snap.State, part...)
				return nil
			})
			return err
		})
	if err != nil {
		return store.Snapshot{}, false, fmt.Errorf("read snapshot: %w", err)
	}
	return snap, ok, nil
}

// SnapshotParts implements Store.
func (s *Store) SnapshotParts(ctx context.Context, snap store.Snapshot) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		seqs := make([]int64, len(snap.From))
		for n, seq := range snap.From {
			seqs[n] = int64(seq)
		}
		rows, err := s.pool.Query(ctx, "SELECT p.bytes FROM unnest($1::bigint[]) WITH ORDINALITY AS w (seq, n) JOIN "+
			"snapshot_part p ON p.seq = w.seq AND p.part = w.n - 1 ORDER BY w.n", seqs)
		if err != nil {
			yield(nil, fmt.Errorf("read snapshot: %w", err))
			return
		}
		defer rows.Close()
		n := 0
		for ; rows.Next(); n++ {
			var part []byte
			if err := rows.Scan(&part); err != nil {
				yield(nil, fmt.Errorf("read snapshot: %w", err))
				return
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

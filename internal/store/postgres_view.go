//go:build !local

package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// ViewMark implements ViewStore.
func (s *Postgres) ViewMark(ctx context.Context) (m ViewMark, err error) {
	err = s.pool.QueryRow(ctx, "SELECT seq, kept, sum FROM view_mark").Scan(&m.Seq, &m.Kept, &m.Sum)
	if err != nil {
		return m, fmt.Errorf("read the view of the log: %w", err)
	}
	return m, nil
}

// MoveView implements ViewStore. It does not need the lead: the tables follow from the log, and if two servers have
// read the same part of it, one of them finds that the mark has moved.
func (s *Postgres) MoveView(ctx context.Context, from, to ViewMark, rows ViewRows) error {
	return s.changeView(ctx, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, "UPDATE view_mark SET seq = $1, kept = $2, sum = $3 WHERE seq = $4 AND kept = $5 AND "+
			"sum = $6", int64(to.Seq), int64(to.Kept), to.Sum, int64(from.Seq), int64(from.Kept), from.Sum)
		if err != nil {
			return err
		}
		if done.RowsAffected() != 1 {
			return errViewMoved()
		}
		if err := archivePgRows(ctx, tx, rows.Archived); err != nil || len(rows.Events) == 0 {
			return err
		}
		names := slices.Sorted(maps.Keys(rows.Events)) // so that two servers lock their rows in the same order
		events := make([][]byte, len(names))
		for i, name := range names {
			events[i] = rows.Events[name]
		}
		_, err = tx.Exec(ctx, "INSERT INTO view_job (name, events) SELECT * FROM unnest($1::text[], $2::bytea[]) "+
			"ON CONFLICT (name) DO UPDATE SET events = view_job.events || excluded.events", names, events)
		return err
	})
}

func archivePgRows(ctx context.Context, tx pgx.Tx, rows map[string]ArchivedRow) error {
	var back, names, states []string
	var seqs, orders []int64
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		if r.Seq == 0 {
			back = append(back, name)
			continue
		}
		names, states = append(names, name), append(states, r.State)
		seqs, orders = append(seqs, int64(r.Seq)), append(orders, int64(r.Order))
	}
	if len(back) > 0 {
		if _, err := tx.Exec(ctx, "DELETE FROM view_archived WHERE name = ANY ($1)", back); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, "INSERT INTO view_archived (name, seq, submitted, state) SELECT * FROM unnest($1::text[], "+
		"$2::bigint[], $3::bigint[], $4::text[]) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq, submitted = "+
		"excluded.submitted, state = excluded.state", names, seqs, orders, states)
	return err
}

// ClearView implements ViewStore.
func (s *Postgres) ClearView(ctx context.Context) error {
	return s.changeView(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE view_mark SET seq = 0, kept = 0, sum = ''")
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM view_job")
		}
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM view_archived")
		}
		return err
	})
}

// changeView calls do in a transaction whose commit does not wait for the disk: what a crash undoes is read from the
// log again.
func (s *Postgres) changeView(ctx context.Context, do func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
			return err
		}
		return do(tx)
	})
	if err != nil && !errors.Is(err, ErrConflict) {
		return s.failed(err)
	}
	return err
}

// JobEvents implements ViewStore.
func (s *Postgres) JobEvents(ctx context.Context, job string) (events []byte, err error) {
	err = s.pool.QueryRow(ctx, "SELECT events FROM view_job WHERE name = $1", job).Scan(&events)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the events of %s: %w", job, err)
	}
	return events, nil
}

// Archived implements ViewStore.
func (s *Postgres) Archived(ctx context.Context, jobs []string) (map[string]ArchivedRow, error) {
	rows, err := s.pool.Query(ctx, "SELECT seq, submitted, state, name FROM view_archived WHERE name = ANY ($1)", jobs)
	if err != nil {
		return nil, fmt.Errorf("look for archived jobs: %w", err)
	}
	found := map[string]ArchivedRow{}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r ArchivedRow, err error) {
		var name string
		r, err = scanArchived(row.Scan, &name)
		found[name] = r
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("look for archived jobs: %w", err)
	}
	return found, nil
}

// ArchivedPage implements ViewStore.
func (s *Postgres) ArchivedPage(ctx context.Context, p ArchivedPage) ([]ArchivedRow, error) {
	rows, err := s.pool.Query(ctx, p.query("view_archived", func(n int) string { return fmt.Sprint("$", n) }),
		int64(p.After), p.end(), p.State, p.Limit)
	if err != nil {
		return nil, fmt.Errorf("list archived jobs: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r ArchivedRow, err error) {
		var name string
		r, err = scanArchived(row.Scan, &name)
		r.Name = name
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("list archived jobs: %w", err)
	}
	if p.Backwards {
		slices.Reverse(list)
	}
	return list, nil
}

// RecordsAt implements ViewStore.
func (s *Postgres) RecordsAt(ctx context.Context, numbers []uint64) ([]Record, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	return s.records(ctx, numbers[0]-1, pgRecords("seq = ANY ($1)"), signed(numbers), len(numbers))
}

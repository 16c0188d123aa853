//go:build !local

package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
	"scrimp/internal/store/layout"
)

// End implements Store.
func (s *Store) End(ctx context.Context) (uint64, error) {
	_, t, err := s.leader(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the end of the log: %w", err)
	}
	return t.End, nil
}

// pgRecords merges the two tables in the log's order, and limits each. Otherwise the database, before it knows the
// sizes of the tables, sorts everything that follows.
func pgRecords(where string) string {
	return "(SELECT seq, gap, tenant, at, kind, key, event, facts, false AS sample FROM event WHERE " + where +
		" ORDER BY seq LIMIT $2) UNION ALL (SELECT seq, gap, tenant, at, kind, key, event, ''::text, true FROM sample" +
		" WHERE " + where + " ORDER BY seq LIMIT $2) ORDER BY seq LIMIT $2"
}

// Records implements Store.
func (s *Store) Records(ctx context.Context, after uint64, limit int) ([]store.Record, error) {
	return s.records(ctx, after, pgRecords("seq > $1"), int64(after), limit)
}

// RecordsOf implements Store.
func (s *Store) RecordsOf(ctx context.Context, kind string, after uint64, limit int) ([]store.Record, error) {
	id, err := s.kinds.find(ctx, s, kind)
	if err != nil {
		return nil, err
	}
	return s.records(ctx, after, pgRecords("kind = $3 AND seq > $1"), int64(after), limit, id)
}

func (s *Store) records(ctx context.Context, after uint64, query string, args ...any) ([]store.Record, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read events after %d: %w", after, err)
	}
	var numbers [][2]int32 // ids of tenant and kind
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r store.Record, err error) {
		var n [2]int32
		err = layout.ScanRecord(&r, row.Scan, &n[0], &n[1])
		numbers = append(numbers, n)
		return r, err
	})
	for i := 0; i < len(list) && err == nil; i++ {
		if list[i].Tenant, err = s.tenants.text(ctx, s, numbers[i][0]); err == nil {
			list[i].Kind, err = s.kinds.text(ctx, s, numbers[i][1])
			layout.Lengthen(&list[i])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read events after %d: %w", after, err)
	}
	return list, nil
}

// WholeRecords implements Store.
func (s *Store) WholeRecords(ctx context.Context, after uint64, limit int) ([]store.Record, error) {
	list, err := s.Records(ctx, after, limit)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	postings := s.postings(ctx, "event BETWEEN $1 AND $2 ORDER BY event, line", int64(list[0].Seq),
		int64(list[len(list)-1].Seq))
	return list, layout.Attach(list, postings, func(tenant string, event uint64) (ledger.Hash, error) {
		return s.head(ctx, tenant, event)
	})
}

// Seen implements Store.
func (s *Store) Seen(ctx context.Context, tenant string, keys ...string) (map[string]uint64, error) {
	id, err := s.tenants.find(ctx, s, tenant)
	if err != nil {
		return nil, fmt.Errorf("look for keys: %w", err)
	}
	rows, err := s.pool.Query(ctx, `SELECT key, min(seq) FROM (
		SELECT key, seq FROM event WHERE tenant = $1 AND key <> '' AND key = ANY ($2)
		UNION ALL SELECT key, seq FROM sample WHERE tenant = $1 AND key <> '' AND key = ANY ($2)
	) AS k GROUP BY key`, id, keys)
	if err != nil {
		return nil, fmt.Errorf("look for keys: %w", err)
	}
	seen := map[string]uint64{}
	var key string
	var seq int64
	if _, err := pgx.ForEachRow(rows, []any{&key, &seq},
		func() error { seen[key] = uint64(seq); return nil }); err != nil {
		return nil, fmt.Errorf("look for keys: %w", err)
	}
	return seen, nil
}

// Postings implements Store.
func (s *Store) Postings(ctx context.Context, tenant, job string) iter.Seq2[ledger.Posting, error] {
	if job == "" {
		return layout.Linked(layout.NoHead, s.postings(ctx, "tenant = $1 ORDER BY event, line", tenant))
	}
	return s.rows(ctx, "SELECT "+pgPosting+`, (SELECT q.hash FROM posting q WHERE q.tenant = posting.tenant
		AND (q.event, q.line) < (posting.event, posting.line) ORDER BY q.event DESC, q.line DESC LIMIT 1)
		FROM posting WHERE tenant = $1 AND job = $2 ORDER BY event, line`, tenant, job)
}

// PostingsOf implements Store.
func (s *Store) PostingsOf(ctx context.Context, tenant string, after, until uint64,
) iter.Seq2[ledger.Posting, error] {
	head := func() (ledger.Hash, error) { return s.head(ctx, tenant, after+1) }
	return layout.Linked(head, s.postings(ctx, "event > $1 AND event <= $2 AND tenant = $3 ORDER BY event, line",
		int64(after), int64(until), tenant))
}

// head returns the hash of the tenant's last posting before an event.
func (s *Store) head(ctx context.Context, tenant string, event uint64) (h ledger.Hash, err error) {
	var hash []byte
	err = s.pool.QueryRow(ctx, "SELECT hash FROM posting WHERE tenant = $1 AND event < $2 ORDER BY event DESC, line "+
		"DESC LIMIT 1", tenant, int64(event)).Scan(&hash)
	return layout.HashOf(hash, err, pgx.ErrNoRows)
}

const pgPosting = "event, line, tenant, job, currency, source, target, amount::text, hash, rest"

// postings reads rows; linked and attach fill in the previous hashes.
func (s *Store) postings(ctx context.Context, where string, args ...any) iter.Seq2[ledger.Posting, error] {
	return s.rows(ctx, "SELECT "+pgPosting+", NULL::bytea FROM posting WHERE "+where, args...)
}

func (s *Store) rows(ctx context.Context, query string, args ...any) iter.Seq2[ledger.Posting, error] {
	return func(yield func(ledger.Posting, error) bool) {
		rows, err := s.pool.Query(ctx, query, args...)
		if err != nil {
			yield(ledger.Posting{}, fmt.Errorf("read postings: %w", err))
			return
		}
		defer rows.Close()
		var hash, rest, prev pgtype.DriverBytes
		var amount string
		for rows.Next() {
			var p ledger.Posting
			err := rows.Scan(&p.Event, &p.Line, &p.Owner.Tenant, &p.Owner.Job, &p.Currency, &p.From, &p.To, &amount, &hash,
				&rest, &prev)
			if err == nil {
				p.Amount, err = money.Parse(amount)
			}
			if err == nil {
				err = layout.Finish(&p, hash, rest, prev)
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

// Meta implements Store.
func (s *Store) Meta(ctx context.Context, key string) (value string, ok bool, err error) {
	err = s.pool.QueryRow(ctx, "SELECT value FROM meta WHERE key = $1", key).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}
	return value, err == nil, err
}

// Place implements Store with the identity of the database within its cluster.
func (s *Store) Place(ctx context.Context) (place string, err error) {
	const query = `SELECT 'database/' || system_identifier || '/' ||
		(SELECT oid FROM pg_database WHERE datname = current_database())
FROM pg_control_system()`
	if err = s.pool.QueryRow(ctx, query).Scan(&place); err != nil {
		return "", fmt.Errorf("find the database: %w", err)
	}
	return place, nil
}

// AllMeta implements Store.
func (s *Store) AllMeta(ctx context.Context) (map[string]string, error) {
	rows, err := s.pool.Query(ctx, "SELECT key, value FROM meta")
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	all := map[string]string{}
	var k, v string
	if _, err := pgx.ForEachRow(rows, []any{&k, &v}, func() error { all[k] = v; return nil }); err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	return all, nil
}

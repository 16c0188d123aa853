//go:build !local

package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"scrimp/internal/ledger"
)

// End implements Store.
func (s *Postgres) End(ctx context.Context) (uint64, error) {
	_, end, err := s.leader(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the end of the log: %w", err)
	}
	return end, nil
}

const pgRecords = "SELECT seq, tenant, at, kind, coalesce(key, ''), event, coalesce(decisions, ''), coalesce(actions, '') FROM event WHERE "

// Records implements Store.
func (s *Postgres) Records(ctx context.Context, after uint64, limit int) ([]Record, error) {
	return s.records(ctx, after, pgRecords+"seq > $1 ORDER BY seq LIMIT $2", int64(after), limit)
}

// RecordsOf implements Store.
func (s *Postgres) RecordsOf(ctx context.Context, kind string, after uint64, limit int) ([]Record, error) {
	return s.records(ctx, after, pgRecords+"kind = $1 AND seq > $2 ORDER BY seq LIMIT $3", kind, int64(after), limit)
}

func (s *Postgres) records(ctx context.Context, after uint64, query string, args ...any) ([]Record, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read events after %d: %w", after, err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Record, err error) {
		var seq, at int64
		var event, decisions, actions []byte
		err = row.Scan(&seq, &r.Tenant, &at, &r.Kind, &r.Key, &event, &decisions, &actions)
		r.Seq, r.At, r.Event = uint64(seq), time.Unix(0, at).UTC(), event
		if len(decisions) > 0 {
			r.Decisions = decisions
		}
		if len(actions) > 0 {
			r.Actions = actions
		}
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("read events after %d: %w", after, err)
	}
	return list, nil
}

// WholeRecords implements Store.
func (s *Postgres) WholeRecords(ctx context.Context, after uint64, limit int) ([]Record, error) {
	list, err := s.Records(ctx, after, limit)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list, attach(list, s.postings(ctx, "event BETWEEN $1 AND $2 ORDER BY event, line", int64(list[0].Seq), int64(list[len(list)-1].Seq)))
}

// Seen implements Store.
func (s *Postgres) Seen(ctx context.Context, tenant string, keys ...string) (map[string]uint64, error) {
	rows, err := s.pool.Query(ctx, "SELECT key, min(seq) FROM event WHERE tenant = $1 AND key = ANY ($2) GROUP BY key", tenant, keys)
	if err != nil {
		return nil, fmt.Errorf("look for keys: %w", err)
	}
	seen := map[string]uint64{}
	var key string
	var seq int64
	if _, err := pgx.ForEachRow(rows, []any{&key, &seq}, func() error { seen[key] = uint64(seq); return nil }); err != nil {
		return nil, fmt.Errorf("look for keys: %w", err)
	}
	return seen, nil
}

// Postings implements Store.
func (s *Postgres) Postings(ctx context.Context, tenant, job string) iter.Seq2[ledger.Posting, error] {
	if job == "" {
		return s.postings(ctx, "tenant = $1 ORDER BY event, line", tenant)
	}
	return s.postings(ctx, "tenant = $1 AND job = $2 ORDER BY event, line", tenant, job)
}

// PostingsOf implements Store.
func (s *Postgres) PostingsOf(ctx context.Context, tenant string, after, until uint64) iter.Seq2[ledger.Posting, error] {
	return s.postings(ctx, "event > $1 AND event <= $2 AND tenant = $3 ORDER BY event, line", int64(after), int64(until), tenant)
}

func (s *Postgres) postings(ctx context.Context, where string, args ...any) iter.Seq2[ledger.Posting, error] {
	return func(yield func(ledger.Posting, error) bool) {
		rows, err := s.pool.Query(ctx, "SELECT posting FROM posting WHERE "+where, args...)
		if err != nil {
			yield(ledger.Posting{}, fmt.Errorf("read postings: %w", err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var text pgtype.DriverBytes
			var p ledger.Posting
			err := rows.Scan(&text)
			if err == nil {
				err = json.Unmarshal(text, &p)
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
func (s *Postgres) Meta(ctx context.Context, key string) (value string, ok bool, err error) {
	err = s.pool.QueryRow(ctx, "SELECT value FROM meta WHERE key = $1", key).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}
	return value, err == nil, err
}

// AllMeta implements Store.
func (s *Postgres) AllMeta(ctx context.Context) (map[string]string, error) {
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

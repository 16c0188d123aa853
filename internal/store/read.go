package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"scrimp/internal/ledger"
)

// End implements Store.
func (s *SQLite) End(ctx context.Context) (uint64, error) {
	var end int64
	if err := s.reads.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM event").Scan(&end); err != nil {
		return 0, fmt.Errorf("read the end of the log: %w", err)
	}
	return uint64(end), nil
}

const selectRecords = "SELECT seq, tenant, at, kind, coalesce(key, ''), event, coalesce(decisions, ''), coalesce(actions, '') FROM event WHERE "

// Records implements Store.
func (s *SQLite) Records(ctx context.Context, after uint64, limit int) ([]Record, error) {
	return s.records(ctx, after, selectRecords+"seq > ? ORDER BY seq LIMIT ?", int64(after), limit)
}

// RecordsOf implements Store.
func (s *SQLite) RecordsOf(ctx context.Context, kind string, after uint64, limit int) ([]Record, error) {
	return s.records(ctx, after, selectRecords+"kind = ? AND seq > ? ORDER BY seq LIMIT ?", kind, int64(after), limit)
}

func (s *SQLite) records(ctx context.Context, after uint64, query string, args ...any) ([]Record, error) {
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read events after %d: %w", after, err)
	}
	defer func() { _ = rows.Close() }()
	var list []Record
	for rows.Next() {
		var r Record
		var seq, at int64
		var event, decisions, actions []byte
		if err := rows.Scan(&seq, &r.Tenant, &at, &r.Kind, &r.Key, &event, &decisions, &actions); err != nil {
			return nil, fmt.Errorf("read events after %d: %w", after, err)
		}
		r.Seq, r.At, r.Event = uint64(seq), time.Unix(0, at).UTC(), event
		if len(decisions) > 0 {
			r.Decisions = decisions
		}
		if len(actions) > 0 {
			r.Actions = actions
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read events after %d: %w", after, err)
	}
	return list, nil
}

// WholeRecords implements Store.
func (s *SQLite) WholeRecords(ctx context.Context, after uint64, limit int) ([]Record, error) {
	list, err := s.Records(ctx, after, limit)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list, attach(list, s.postings(ctx, "event BETWEEN ? AND ? ORDER BY event, line", int64(list[0].Seq), int64(list[len(list)-1].Seq)))
}

// attach gives each record, without a hole between them, its postings.
func attach(list []Record, postings iter.Seq2[ledger.Posting, error]) error {
	for p, err := range postings {
		if err != nil {
			return err
		}
		r := &list[p.Event-list[0].Seq]
		r.Postings = append(r.Postings, p)
	}
	return nil
}

// Seen implements Store.
func (s *SQLite) Seen(ctx context.Context, tenant string, keys ...string) (map[string]uint64, error) {
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, fmt.Errorf("look for keys: %w", err)
	}
	rows, err := s.seen.QueryContext(ctx, tenant, string(list))
	if err != nil {
		return nil, fmt.Errorf("look for keys: %w", err)
	}
	defer func() { _ = rows.Close() }()
	seen := map[string]uint64{}
	for rows.Next() {
		var key string
		var seq int64
		if err := rows.Scan(&key, &seq); err != nil {
			return nil, fmt.Errorf("look for keys: %w", err)
		}
		seen[key] = uint64(seq)
	}
	return seen, rows.Err()
}

// Postings implements Store.
func (s *SQLite) Postings(ctx context.Context, tenant, job string) iter.Seq2[ledger.Posting, error] {
	if job == "" {
		return s.postings(ctx, "tenant = ? ORDER BY event, line", tenant)
	}
	return s.postings(ctx, "tenant = ? AND job = ? ORDER BY event, line", tenant, job)
}

// PostingsOf implements Store. The plus keeps the index by job from being taken for the tenant.
func (s *SQLite) PostingsOf(ctx context.Context, tenant string, after, until uint64) iter.Seq2[ledger.Posting, error] {
	return s.postings(ctx, "event > ? AND event <= ? AND +tenant = ? ORDER BY event, line", int64(after), int64(until), tenant)
}

func (s *SQLite) postings(ctx context.Context, where string, args ...any) iter.Seq2[ledger.Posting, error] {
	return func(yield func(ledger.Posting, error) bool) {
		rows, err := s.reads.QueryContext(ctx, "SELECT posting FROM posting WHERE "+where, args...)
		if err != nil {
			yield(ledger.Posting{}, fmt.Errorf("read postings: %w", err))
			return
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var text sql.RawBytes
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
func (s *SQLite) Meta(ctx context.Context, key string) (string, bool, error) {
	var v string
	err := s.reads.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", key).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return v, err == nil, err
}

// AllMeta implements Store.
func (s *SQLite) AllMeta(ctx context.Context) (map[string]string, error) {
	rows, err := s.reads.QueryContext(ctx, "SELECT key, value FROM meta")
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	defer func() { _ = rows.Close() }()
	all := map[string]string{}
	for rows.Next() {
		var k, v string
		if err := rows.Scan(&k, &v); err != nil {
			return nil, fmt.Errorf("read facts: %w", err)
		}
		all[k] = v
	}
	return all, rows.Err()
}

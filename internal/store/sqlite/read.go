package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/fileid"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
	"scrimp/internal/store/layout"
)

// End implements Store.
func (s *Store) End(ctx context.Context) (uint64, error) {
	t, err := s.readTail(ctx)
	return t.End, err
}

// readTail finds the last record, which is never dropped and refers to the last kept one.
func (s *Store) readTail(ctx context.Context) (layout.Tail, error) {
	var event, sample, gap int64
	err := s.reads.QueryRowContext(ctx, `SELECT (SELECT coalesce(max(seq), 0) FROM event),
		(SELECT coalesce(max(seq), 0) FROM sample),
		coalesce((SELECT gap FROM sample ORDER BY seq DESC LIMIT 1), 0)`).Scan(&event, &sample, &gap)
	if err != nil {
		return layout.Tail{}, fmt.Errorf("read the end of the log: %w", err)
	}
	if sample > event {
		return layout.Tail{End: uint64(sample), Kept: uint64(sample - gap - 1)}, nil
	}
	return layout.Tail{End: uint64(event), Kept: uint64(event)}, nil
}

// selectRecords merges the two tables, both stored in the log's order, so nothing is sorted.
func selectRecords(where string) string {
	return "SELECT seq, gap, tenant, at, kind, key, event, facts, 0 AS sample FROM event WHERE " + where +
		" UNION ALL SELECT seq, gap, tenant, at, kind, key, event, '', 1 FROM sample WHERE " + where +
		" ORDER BY seq LIMIT ?2"
}

// Records implements Store.
func (s *Store) Records(ctx context.Context, after uint64, limit int) ([]store.Record, error) {
	return s.records(ctx, after, selectRecords("seq > ?1"), int64(after), limit)
}

// RecordsOf implements Store.
func (s *Store) RecordsOf(ctx context.Context, kind string, after uint64, limit int) ([]store.Record, error) {
	return s.records(ctx, after, selectRecords("kind = ?3 AND seq > ?1"), int64(after), limit, kind)
}

func (s *Store) records(ctx context.Context, after uint64, query string, args ...any) ([]store.Record, error) {
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read events after %d: %w", after, err)
	}
	defer func() { _ = rows.Close() }()
	var list []store.Record
	for rows.Next() {
		var r store.Record
		if err := layout.ScanRecord(&r, rows.Scan, &r.Tenant, &r.Kind); err != nil {
			return nil, fmt.Errorf("read events after %d: %w", after, err)
		}
		layout.Lengthen(&r)
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
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
	postings := s.postings(ctx, "event BETWEEN ? AND ? ORDER BY event, line", int64(list[0].Seq),
		int64(list[len(list)-1].Seq))
	return list, layout.Attach(list, postings, func(tenant string, event uint64) (ledger.Hash, error) {
		return s.head(ctx, tenant, event)
	})
}

// Seen implements Store.
func (s *Store) Seen(ctx context.Context, tenant string, keys ...string) (map[string]uint64, error) {
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
func (s *Store) Postings(ctx context.Context, tenant, job string) iter.Seq2[ledger.Posting, error] {
	if job == "" {
		return layout.Linked(layout.NoHead, s.postings(ctx, "tenant = ? ORDER BY event, line", tenant))
	}
	return s.rows(ctx, "SELECT "+postingColumns+`, (SELECT q.hash FROM posting q WHERE +q.tenant = posting.tenant
		AND (q.event, q.line) < (posting.event, posting.line) ORDER BY q.event DESC, q.line DESC LIMIT 1)
		FROM posting WHERE tenant = ? AND job = ? ORDER BY event, line`, tenant, job)
}

// PostingsOf implements Store. The plus keeps SQLite from using the index by job for the tenant.
func (s *Store) PostingsOf(ctx context.Context, tenant string, after, until uint64) iter.Seq2[ledger.Posting, error] {
	head := func() (ledger.Hash, error) { return s.head(ctx, tenant, after+1) }
	return layout.Linked(head, s.postings(ctx, "event > ? AND event <= ? AND +tenant = ? ORDER BY event, line",
		int64(after), int64(until), tenant))
}

// head returns the hash of the tenant's last posting before an event.
func (s *Store) head(ctx context.Context, tenant string, event uint64) (h ledger.Hash, err error) {
	var hash []byte
	err = s.reads.QueryRowContext(ctx, "SELECT hash FROM posting WHERE +tenant = ? AND event < ? ORDER BY event DESC, "+
		"line DESC LIMIT 1", tenant, int64(event)).Scan(&hash)
	return layout.HashOf(hash, err, sql.ErrNoRows)
}

const postingColumns = "event, line, tenant, job, currency, source, target, micros, picos, hash, rest"

// postings reads rows; linked and attach fill in the previous hashes.
func (s *Store) postings(ctx context.Context, where string, args ...any) iter.Seq2[ledger.Posting, error] {
	return s.rows(ctx, "SELECT "+postingColumns+", NULL FROM posting WHERE "+where, args...)
}

func (s *Store) rows(ctx context.Context, query string, args ...any) iter.Seq2[ledger.Posting, error] {
	return func(yield func(ledger.Posting, error) bool) {
		rows, err := s.reads.QueryContext(ctx, query, args...)
		if err != nil {
			yield(ledger.Posting{}, fmt.Errorf("read postings: %w", err))
			return
		}
		defer func() { _ = rows.Close() }()
		var hash, rest, prev sql.RawBytes
		var micros, picos int64
		for rows.Next() {
			var p ledger.Posting
			err := rows.Scan(&p.Event, &p.Line, &p.Owner.Tenant, &p.Owner.Job, &p.Currency, &p.From, &p.To, &micros, &picos,
				&hash, &rest, &prev)
			p.Amount = money.FromMicros(micros, picos)
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
func (s *Store) Meta(ctx context.Context, key string) (string, bool, error) {
	var v string
	err := s.reads.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", key).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return v, err == nil, err
}

// Place implements Store with the identity of the database's file.
func (s *Store) Place(context.Context) (string, error) {
	return fileid.Of(filepath.Join(s.dir, databaseName))
}

// AllMeta implements Store.
func (s *Store) AllMeta(ctx context.Context) (map[string]string, error) {
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

//go:build !local

package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
)

// names maps texts that many rows share to their numbers in a table that only grows.
type names struct {
	table string
	mu    sync.Mutex
	ids   map[string]int32
	texts map[int32]string
}

func newNames(table string) *names {
	return &names{table: table, ids: map[string]int32{}, texts: map[int32]string{}}
}

// load reads names that other servers have added.
func (n *names) load(ctx context.Context, s *Store) error {
	rows, err := s.pool.Query(ctx, "SELECT id, name FROM "+n.table)
	if err != nil {
		return fmt.Errorf("read the %ss: %w", n.table, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var id int32
	var text string
	if _, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error {
		n.ids[text], n.texts[id] = id, text
		return nil
	}); err != nil {
		return fmt.Errorf("read the %ss: %w", n.table, err)
	}
	return nil
}

// of returns the numbers of texts, and the texts that have none.
func (n *names) of(texts []string) (ids []int32, missing []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	unknown := map[string]bool{}
	ids = make([]int32, len(texts))
	for i, text := range texts {
		var ok bool
		if ids[i], ok = n.ids[text]; !ok {
			unknown[text] = true
		}
	}
	return ids, slices.Sorted(maps.Keys(unknown))
}

// number returns the numbers of texts, and assigns new ones where needed.
func (n *names) number(ctx context.Context, s *Store, texts []string) ([]int32, error) {
	ids, missing := n.of(texts)
	if len(missing) == 0 {
		return ids, nil
	}
	err := s.fenced(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO "+n.table+` (name) SELECT t FROM unnest($1::text[]) AS t
			WHERE NOT EXISTS (SELECT FROM `+n.table+" WHERE name = t)", missing)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := n.load(ctx, s); err != nil {
		return nil, err
	}
	if ids, missing = n.of(texts); len(missing) > 0 {
		return nil, fmt.Errorf("the database has no number for the %s %q", n.table, missing[0])
	}
	return ids, nil
}

// find returns the number of a text; 0 if it has none, so that no row matches.
func (n *names) find(ctx context.Context, s *Store, text string) (int32, error) {
	ids, missing := n.of([]string{text})
	if len(missing) > 0 {
		if err := n.load(ctx, s); err != nil {
			return 0, err
		}
		ids, _ = n.of([]string{text})
	}
	return ids[0], nil
}

// text returns the text of a number. The caller must not be reading rows: two connections per caller would exceed the
// pool.
func (n *names) text(ctx context.Context, s *Store, id int32) (string, error) {
	for range 2 {
		n.mu.Lock()
		text, ok := n.texts[id]
		n.mu.Unlock()
		if ok {
			return text, nil
		}
		if err := n.load(ctx, s); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("the database has no %s of number %d", n.table, id)
}

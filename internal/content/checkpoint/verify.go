package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"scrimp/internal/content/checkpoint/format"
)

// Depth is how closely Verify checks.
type Depth int

// Depths of Verify.
const (
	Sizes Depth = iota // every part exists and has its size
	Full               // every byte is read back and hashed
)

// Verify compares the store with a manifest. It returns ErrDamaged if they differ.
func (s *Store) Verify(ctx context.Context, m format.Manifest, depth Depth) error {
	parts := m.Parts()
	var err error
	if depth == Full {
		err = s.objects.ReadBack(ctx, parts, nil)
	} else {
		err = s.objects.CheckSizes(ctx, parts)
	}
	if err != nil {
		return fmt.Errorf("verify %s: %w", m.Name, err)
	}
	return nil
}

// Verify reads back the parts of a manifest that this writer has not read back before. The next publish stores
// damaged parts again.
func (w *Writer) Verify(ctx context.Context, m format.Manifest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.verify(ctx, m)
}

func (w *Writer) verify(ctx context.Context, m format.Manifest) error {
	var rest []format.Part
	for _, p := range m.Parts() {
		if !w.verified[p.Key()] {
			rest = append(rest, p)
		}
	}
	whole := make(chan format.Part, len(rest))
	err := w.store.objects.ReadBack(ctx, rest, func(p format.Part) { whole <- p })
	close(whole)
	for p := range whole {
		w.verified[p.Key()] = true
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrDamaged) {
		for _, p := range rest {
			if !w.verified[p.Key()] {
				delete(w.known, p.Sum)
			}
		}
	}
	return fmt.Errorf("verify %s: %w", m.Name, err)
}

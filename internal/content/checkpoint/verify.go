package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"

	"scrimp/internal/content/checkpoint/format"

	"gocloud.dev/blob"
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
		err = s.readAll(ctx, parts, nil)
	} else {
		err = s.parallel(ctx, len(parts), 0, func(ctx context.Context, _ []byte, i int) error {
			a, err := s.bucket.Attributes(ctx, s.prefix+parts[i].Key())
			if err != nil {
				return readError(parts[i].Key(), err)
			}
			if a.Size != parts[i].Size {
				return fmt.Errorf("read %s: %w: %d bytes, not %d", parts[i].Key(), ErrDamaged, a.Size, parts[i].Size)
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("verify %s: %w", m.Name, err)
	}
	return nil
}

// readAll reads parts back and calls done, unless it is nil, for each that is intact.
func (s *Store) readAll(ctx context.Context, parts []format.Part, done func(format.Part)) error {
	return s.parallel(ctx, len(parts), s.bufferFor(parts), func(ctx context.Context, buffer []byte, i int) error {
		if err := s.readPart(ctx, parts[i], buffer[:parts[i].Size]); err != nil {
			return err
		}
		if done != nil {
			done(parts[i])
		}
		return nil
	})
}

func (s *Store) bufferFor(parts []format.Part) int64 {
	var n int64
	for _, p := range parts {
		n = max(n, p.Size)
	}
	return n
}

// readPart fills the buffer with a part whose every byte is right. It reads twice before it reports damage, because
// the transport may be at fault.
func (s *Store) readPart(ctx context.Context, p format.Part, buffer []byte) error {
	p.Tag = ""
	return s.readTagged(ctx, p, buffer)
}

// readTagged is readPart with a check of the tag, if the part has one. The second time the hash decides.
func (s *Store) readTagged(ctx context.Context, p format.Part, buffer []byte) error {
	err := s.readPartOnce(ctx, p, buffer)
	if errors.Is(err, ErrDamaged) {
		p.Tag = ""
		err = s.readPartOnce(ctx, p, buffer)
	}
	return err
}

func (s *Store) readPartOnce(ctx context.Context, p format.Part, buffer []byte) (err error) {
	r, err := s.bucket.NewReader(ctx, s.prefix+p.Key(), &blob.ReaderOptions{})
	if err != nil {
		return readError(p.Key(), err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Size() != p.Size {
		return fmt.Errorf("read %s: %w: %d bytes, not %d", p.Key(), ErrDamaged, r.Size(), p.Size)
	}
	if _, err := io.ReadFull(r, buffer); err != nil {
		return readError(p.Key(), err)
	}
	if !p.Holds(buffer) {
		return fmt.Errorf("read %s: %w: its content has another hash", p.Key(), ErrDamaged)
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
	err := w.store.readAll(ctx, rest, func(p format.Part) { whole <- p })
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

package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"scrimp/internal/content/checkpoint/format"
)

// Find returns the checkpoint of that name if it counts; "" means the newest that does. It returns ErrNone if there
// is none.
func (s *Store) Find(ctx context.Context, name string) (format.Manifest, error) {
	none := fmt.Errorf("checkpoint %s: %w", name, ErrNone)
	if name == "" {
		none = fmt.Errorf("complete checkpoint: %w", ErrNone)
	}
	var found format.Manifest
	err := s.each(ctx, func(l Listed) bool {
		switch {
		case name != "" && l.Name != name, l.Fenced:
			return true
		case l.Damaged == nil:
			found, none = l.Manifest, nil
		case name != "":
			none = fmt.Errorf("checkpoint %s: %w", name, l.Damaged)
		default:
			return true
		}
		return false
	})
	return found, cmp.Or(err, none)
}

// Export writes the files of a checkpoint into dir, each part checked against its hash.
func (s *Store) Export(ctx context.Context, m format.Manifest, dir string) error {
	if err := s.objects.Fetch(ctx, m, dir); err != nil {
		return fmt.Errorf("fetch checkpoint %s: %w", m.Name, err)
	}
	return nil
}

// CopyFrom publishes a checkpoint of another store in this one, each part checked against its hash on the way.
// Nothing of it counts before it is complete.
func (w *Writer) CopyFrom(ctx context.Context, from *Store, m format.Manifest, meta format.Meta) (format.Manifest,
	error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	home := w.token.String()
	if err := w.store.objects.CopyParts(ctx, from.objects, m.Parts(), home); err != nil {
		return format.Manifest{}, fmt.Errorf("copy checkpoint %s: %w", m.Name, err)
	}
	meta.Epoch, meta.Captured, meta.Metrics = w.token.epoch, m.Captured, m.Metrics
	c := format.Manifest{Form: m.Form, Meta: meta, Session: w.token.session, Writer: w.name, Published: m.Published,
		Bytes: m.Bytes, Ranks: m.Ranks}
	for _, f := range m.Files {
		moved := make([]format.Part, 0, len(f.Parts))
		for _, p := range f.Parts {
			p.Home = home
			moved = append(moved, p)
		}
		if f.Parts = moved; len(moved) == 0 {
			f.Parts = nil
		}
		c.Files = append(c.Files, f)
	}
	if err := w.create(ctx, &c); err != nil {
		return format.Manifest{}, fmt.Errorf("copy checkpoint %s: %w", m.Name, err)
	}
	return c, nil
}

// Remove deletes a checkpoint and the parts that no other one needs. Nobody may write to the store meanwhile.
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := s.remove(ctx, name); err != nil {
		return fmt.Errorf("remove checkpoint %s: %w", name, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, name string) error {
	found, whole, used := false, true, map[string]bool{}
	err := s.each(ctx, func(l Listed) bool {
		if l.Name == name {
			found = true
			return true
		}
		whole = whole && l.Damaged == nil // nobody knows which parts it needs
		for _, p := range l.Parts() {
			used[p.Key()] = true
		}
		return true
	})
	if err != nil {
		return err
	}
	if !found {
		return ErrNone
	}
	if err := s.objects.Remove(ctx, "manifests/"+name); err != nil || !whole {
		return err
	}
	names, err := s.objects.Names(ctx, "objects")
	if err != nil {
		return err
	}
	for _, name := range names {
		home, _, _ := strings.Cut(name, "/")
		_, _, pair := format.ParseName(home)
		if _, rank := parseShare(home); !pair && !rank || used["objects/"+name] {
			continue
		}
		if err := s.objects.Remove(ctx, "objects/"+name); err != nil {
			return err
		}
	}
	return nil
}

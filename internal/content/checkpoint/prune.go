package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/content/checkpoint/format"
)

// Keep says which checkpoints stay. The newest always does.
type Keep struct {
	Last     int    // number of newest checkpoints to keep; below 1 means 1
	Best     string // metric whose best checkpoint stays; empty: none
	Maximize bool   // the best is the highest value; otherwise the lowest
	EveryNth int    // checkpoints whose sequence number is a multiple stay; 0: none
}

// Pruned lists what a prune dropped.
type Pruned struct {
	Manifests []string
	Objects   int
}

// Prune first reads back every part of the newest checkpoint. Then it drops checkpoints that keep does not name, and
// the parts that no checkpoint refers to. It touches nothing that a newer claim stored or could refer to.
func (w *Writer) Prune(ctx context.Context, keep Keep) (Pruned, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.prune(ctx, keep)
	if err != nil {
		return p, fmt.Errorf("prune: %w", err)
	}
	return p, nil
}

func (w *Writer) prune(ctx context.Context, keep Keep) (Pruned, error) {
	var done Pruned
	v, err := w.store.survey(ctx)
	if err != nil {
		return done, err
	}
	// The listing came first: a claim made after this check sees no checkpoint that counts and is newer than those in
	// v.
	if err := w.unfenced(ctx); err != nil {
		return done, err
	}
	counting, drop, err := w.store.counting(ctx, v)
	if err != nil || len(counting) == 0 {
		return done, err
	}
	if err := w.verify(ctx, counting[len(counting)-1]); err != nil {
		return done, err
	}
	stays := keep.stays(counting)
	used := map[string]bool{}
	for i, m := range counting {
		if !stays[i] {
			drop = append(drop, m.Name)
			continue
		}
		for _, p := range m.Parts() {
			used[p.Key()] = true
		}
	}
	if w.swept && len(drop) == 0 {
		return done, nil
	}
	w.swept = false
	slices.SortFunc(drop, format.CompareNames) // oldest first
	for _, name := range drop {
		if err := w.store.objects.Remove(ctx, "manifests/"+name); err != nil {
			return done, err
		}
		done.Manifests = append(done.Manifests, name)
	}
	err = w.sweep(ctx, used, &done)
	w.swept = err == nil
	return done, err
}

// counting returns the checkpoints that count, oldest first, and the names of those that are fenced out or damaged. A
// damaged newest one is an error, because it may be the only one.
func (s *Store) counting(ctx context.Context, v view) (counting []format.Manifest, drop []string, err error) {
	for i, name := range v.names {
		m, err := s.manifest(ctx, v, name)
		switch {
		case err == nil:
			counting = append(counting, m)
		case errors.Is(err, errFencedOut):
			drop = append(drop, name)
		case errors.Is(err, ErrDamaged) && i < len(v.names)-1:
			drop = append(drop, name)
		default:
			return nil, nil, err
		}
	}
	return counting, drop, nil
}

// stays says for each checkpoint, oldest first, whether it stays.
func (k Keep) stays(all []format.Manifest) []bool {
	stays := make([]bool, len(all))
	best := -1
	for i, m := range all {
		_, seq, _ := format.ParseName(m.Name)
		stays[i] = i >= len(all)-max(k.Last, 1) || k.EveryNth > 0 && seq%k.EveryNth == 0
		v, ok := m.Metrics[k.Best]
		if !ok || k.Best == "" {
			continue
		}
		if best < 0 || k.Maximize && v >= all[best].Metrics[k.Best] || !k.Maximize && v <= all[best].Metrics[k.Best] {
			best = i
		}
	}
	if best >= 0 {
		stays[best] = true
	}
	return stays
}

// sweep drops unused parts that this claim or an older one stored.
func (w *Writer) sweep(ctx context.Context, used map[string]bool, done *Pruned) error {
	names, err := w.store.objects.Names(ctx, "objects")
	if err != nil {
		return err
	}
	for _, name := range names {
		home, sum, _ := strings.Cut(name, "/")
		if !w.mayDrop(home) || used["objects/"+name] {
			continue
		}
		// Forget it first, so that no publish refers to it; then delete it.
		if w.known[sum].Home == home {
			delete(w.known, sum)
		}
		delete(w.verified, "objects/"+name)
		if err := w.store.objects.Remove(ctx, "objects/"+name); err != nil {
			return err
		}
		done.Objects++
	}
	shares, err := w.store.objects.Names(ctx, "shares")
	for _, name := range shares {
		if w.mayDrop(name) {
			err = errors.Join(err, w.store.objects.Remove(ctx, "shares/"+name))
		}
	}
	return err
}

// mayDrop reports whether only the checkpoints that count can refer to the objects of a home: it belongs to this
// claim or an older one, and is not another rank's share of a step that may still be published.
func (w *Writer) mayDrop(home string) bool {
	if h, ok := parseShare(home); ok {
		return h.token.before(w.token) || h.token == w.token && h.step < w.shared
	}
	epoch, session, ok := format.ParseName(home)
	return ok && !w.token.before(token{epoch, session})
}

// Listed is a checkpoint in the store.
type Listed struct {
	Name string
	format.Manifest
	Count   int   // of files, folders and links
	Fenced  bool  // it does not count
	Damaged error // its manifest cannot be read; nil says nothing about its parts
}

// List returns the checkpoints, newest first, with the number of their files and without the list: a manifest may
// have 64 MiB, and a program may have written many.
func (s *Store) List(ctx context.Context) (all []Listed, err error) {
	err = s.each(ctx, func(l Listed) bool {
		l.Count, l.Files = len(l.Files), nil
		all = append(all, l)
		return true
	})
	return all, err
}

// Each calls do with every readable checkpoint that counts, newest first, with one manifest at a time in memory.
func (s *Store) Each(ctx context.Context, do func(format.Manifest)) error {
	return s.each(ctx, func(l Listed) bool {
		if !l.Fenced && l.Damaged == nil {
			do(l.Manifest)
		}
		return true
	})
}

// each calls do with every checkpoint, newest first, until it returns false. Only one manifest at a time is in
// memory.
func (s *Store) each(ctx context.Context, do func(Listed) bool) error {
	v, err := s.survey(ctx)
	if err != nil {
		return fmt.Errorf("list checkpoints: %w", err)
	}
	for _, name := range slices.Backward(v.names) {
		l := Listed{Name: name}
		l.Manifest, err = s.manifest(ctx, v, name)
		switch {
		case err == nil:
		case errors.Is(err, errFencedOut):
			l.Fenced = true
		case errors.Is(err, ErrDamaged):
			l.Damaged = err
		default:
			return fmt.Errorf("list checkpoints: %w", err)
		}
		if !do(l) {
			return nil
		}
	}
	return nil
}

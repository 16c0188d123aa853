package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
)

// Refused is a checkpoint that restore skipped.
type Refused struct {
	Name string
	Why  string
}

// Restored describes the state from which a program starts.
type Restored struct {
	Manifest *format.Manifest // nil: no checkpoint
	Refused  []Refused        // newer ones that are damaged, newest first
	Took     time.Duration
}

// Restore replaces the content of folder dir with the newest checkpoint that counts and whose every byte is right. It
// ignores epochs above epoch; 0 means any. If there is no checkpoint, dir stays unchanged. A store that does not
// answer is an error, never a reason to restore an older checkpoint.
func (s *Store) Restore(ctx context.Context, epoch int, dir string) (Restored, error) {
	r, _, err := s.restore(ctx, epoch, dir)
	return r, err
}

// Restore restores under the writer's claim, and returns ErrFenced if the claim is lost. The next publish stores only
// what differs.
func (w *Writer) Restore(ctx context.Context, dir string) (Restored, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, v, err := w.store.restore(ctx, w.token.epoch, dir)
	if err != nil {
		return r, err
	}
	if w.token.before(v.token) {
		return r, fmt.Errorf("restore to %s: %w", dir, ErrFenced)
	}
	// A prune of the previous claim may still be running, and is sure to keep only the newest checkpoint that counts.
	if r.Manifest != nil && len(r.Refused) == 0 {
		own, _ := w.store.own(*r.Manifest) // it was restored
		for _, p := range own.Parts() {
			w.known[p.Sum] = p
			w.verified[p.Key()] = true
		}
	}
	return r, nil
}

func (s *Store) restore(ctx context.Context, epoch int, dir string) (Restored, view, error) {
	begin := time.Now()
	dir = filepath.Clean(dir)
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	folder.Clean(dir)
	v, err := s.survey(ctx)
	r := Restored{Refused: v.refused}
	for _, name := range slices.Backward(v.names) {
		if err != nil {
			break
		}
		if e, _, _ := format.ParseName(name); epoch > 0 && e > epoch {
			continue
		}
		var m format.Manifest
		m, err = s.manifest(ctx, v, name)
		if err == nil {
			err = s.fetchOwn(ctx, m, dir)
		}
		switch {
		case err == nil:
			r.Manifest, r.Took = &m, time.Since(begin)
			return r, v, nil
		case errors.Is(err, errFencedOut):
			err = nil
		case errors.Is(err, ErrDamaged):
			r.Refused = append(r.Refused, Refused{Name: name, Why: err.Error()})
			err = nil
		}
	}
	r.Took = time.Since(begin)
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: free space on this machine, or ask for a larger disk", err)
	}
	if err != nil {
		return r, v, fmt.Errorf("restore to %s: %w", dir, err)
	}
	return r, v, nil
}

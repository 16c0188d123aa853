package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
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

// fetch writes a manifest's files to a temporary folder and replaces dir with it when all are right.
func (s *Store) fetch(ctx context.Context, m format.Manifest, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	aside, err := folder.MakeAside(dir, folder.RestoreMark)
	if err != nil {
		return err
	}
	defer folder.Drop(aside)
	fresh := filepath.Join(aside, "new")
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	if err := s.write(ctx, m, fresh); err != nil {
		return err
	}
	return folder.Swap(dir, fresh, filepath.Join(aside, "old"))
}

// write writes a manifest's files below an empty folder.
func (s *Store) write(ctx context.Context, m format.Manifest, dir string) (err error) {
	root, err := os.OpenRoot(dir) // nothing in a manifest leads out of it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	type place struct {
		format.Part
		path   string
		offset int64
		turn   *sync.Mutex
	}
	var places []place
	for _, f := range m.Files {
		switch f.Mode.Type() {
		case fs.ModeDir:
			err = root.Mkdir(f.Path, 0o700)
		case 0:
			err = create(root, f.Path, f.Size)
		}
		if err != nil {
			return err
		}
		// The kernel lets one thread write to a file at a time, and the others spin: a third of the processor time of
		// a restore. With a lock they hash meanwhile.
		at, turn := int64(0), &sync.Mutex{}
		for _, p := range f.Parts {
			places = append(places, place{p, f.Path, at, turn})
			at += p.Size
		}
	}
	err = s.parallel(ctx, len(places), s.bufferFor(m.Parts()), func(ctx context.Context, buffer []byte, i int) error {
		p := places[i]
		if err := s.readTagged(ctx, p.Part, buffer[:p.Size]); err != nil {
			return err
		}
		p.turn.Lock()
		defer p.turn.Unlock()
		return writeAt(root, p.path, p.offset, buffer[:p.Size])
	})
	if err != nil {
		return err
	}
	return finish(root, m.Files)
}

func create(root *os.Root, path string, size int64) error {
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

func writeAt(root *os.Root, path string, offset int64, data []byte) error {
	f, err := root.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, offset)
	return errors.Join(err, f.Close())
}

// finish creates the links, and sets permissions and times, contents before their folders.
func finish(root *os.Root, files []format.File) error {
	for _, f := range slices.Backward(files) {
		if f.Mode.Type() == fs.ModeSymlink {
			if err := root.Symlink(f.Target, f.Path); err != nil {
				return err
			}
			continue
		}
		if err := root.Chtimes(f.Path, f.Modified, f.Modified); err != nil {
			return err
		}
		if err := root.Chmod(f.Path, f.Mode.Perm()); err != nil {
			return err
		}
	}
	return nil
}

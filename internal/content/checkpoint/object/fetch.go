package object

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
)

// Fetch writes a manifest's files to a temporary folder and replaces dir with it when all are right.
func (s *Store) Fetch(ctx context.Context, m format.Manifest, dir string) (err error) {
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
	err = s.parallel(ctx, len(places), bufferFor(m.Parts()), func(ctx context.Context, buffer []byte, i int) error {
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

package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/work/storage"
)

// errGrown says that a checkpoint has other files than the plan knows.
var errGrown = errors.New("files were added to this checkpoint or removed from it since the plan was made")

// errLink says that a folder of a path has become a link.
var errLink = errors.New("a folder of its path is a link now")

// grown returns errors for up to maxFaults checkpoint folders that have other files than the scan found.
func grown(ctx context.Context, targets []target, folders []storage.Folder) (faults []error) {
	for _, f := range folders {
		t := targets[f.Place]
		if t == nil { // nothing in the place is deleted
			continue
		}
		now, err := t.census(ctx, f)
		if err == nil && now != f.Census {
			err = errGrown
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", f.Path, err))
		}
		if len(faults) == maxFaults || ctx.Err() != nil {
			break
		}
	}
	return faults
}

// inWords returns errLink for an error at a path one of whose folders is a link by now.
func (t *folderTarget) inWords(name string, err error) error {
	for dir := name; err != nil && dir != "."; dir = path.Dir(dir) {
		if info, wrong := t.Lstat(dir); wrong == nil && info.Mode()&fs.ModeSymlink != 0 {
			return errLink
		}
	}
	return err
}

// walk visits the files and folders below a folder; each folder after all that is in it.
func (t *folderTarget) walk(ctx context.Context, dir string, visit func(name string, e fs.DirEntry)) error {
	f, err := t.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			if err := t.walk(ctx, name, visit); err != nil {
				return err
			}
		}
		visit(name, e)
	}
	return nil
}

func (t *folderTarget) census(ctx context.Context, f storage.Folder) (c storage.Census, err error) {
	err = t.walk(ctx, f.Path, func(name string, e fs.DirEntry) {
		if e.Type().IsRegular() && f.Has(name) {
			c = c.With(name)
		}
	})
	return c, t.inWords(f.Path, err)
}

// tidy removes the empty folders of a checkpoint and leaves all others: the system removes no folder with files.
func (t *folderTarget) tidy(f storage.Folder) {
	_ = t.walk(context.Background(), f.Path, func(name string, e fs.DirEntry) {
		if e.IsDir() {
			_ = t.Remove(name)
		}
	})
	if info, err := t.Lstat(f.Path); err == nil && info.IsDir() {
		_ = t.Remove(f.Path)
	}
}

func (t *bucketTarget) census(ctx context.Context, f storage.Folder) (c storage.Census, err error) {
	for list := t.List(&gocloud.ListOptions{Prefix: f.Path + "/"}); ; {
		o, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, err
		}
		if f.Has(o.Key) {
			c = c.With(o.Key)
		}
	}
}

// tidy does nothing: a bucket has no folders.
func (t *bucketTarget) tidy(storage.Folder) {}

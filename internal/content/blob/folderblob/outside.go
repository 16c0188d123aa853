package folderblob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// This file holds what a server needs to serve a folder's blobs.

// OpenBlob opens a blob for reading, and returns the ETag of its content.
func (f *Store) OpenBlob(key string) (file *os.File, stat fs.FileInfo, etag string, err error) {
	file, stat, err = f.open(key)
	if err != nil {
		return nil, nil, "", err
	}
	return file, stat, tag(stat), nil
}

// Linkless returns an error if a symbolic link is on the path of a key, because it could lead out of the folder. It
// returns nil if nothing exists at the path.
func (f *Store) Linkless(key string) error {
	if key == "" {
		return nil
	}
	path, err := f.path(key)
	if err != nil {
		return err
	}
	at := f.root
	rest, _ := filepath.Rel(f.root, path) // both begin with the root
	for _, name := range strings.Split(rest, string(filepath.Separator)) {
		at = filepath.Join(at, name)
		stat, err := os.Lstat(at)
		if err != nil {
			return nil // there is no link; opening the file reports other errors
		}
		if stat.Mode()&fs.ModeSymlink != 0 {
			return &fs.PathError{Op: "open", Path: at, Err: fs.ErrNotExist}
		}
	}
	return nil
}

// Sync makes blobs durable that were written as part of a Later on which Leave was called.
func (f *Store) Sync(ctx context.Context, keys []string) error {
	dirs := map[string]bool{}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		file, _, err := f.open(key)
		if err != nil {
			return err
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return f.full(filepath.Dir(file.Name()), err)
		}
		dirs[filepath.Dir(file.Name())] = true
	}
	var err error
	for d := range dirs {
		err = errors.Join(err, syncFolder(d))
	}
	return err
}

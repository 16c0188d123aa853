// Package durable writes small files so that they are either complete or unchanged.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Replace makes text the content of the file at path, with mode 0600, and returns once it is on the disk. A reader
// meanwhile, or after a crash, finds either the whole old text or the whole new one.
func Replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return Folder(filepath.Dir(path))
}

// Folder returns once the names in a folder are on the disk.
func Folder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

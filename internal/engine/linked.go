package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LinkSettings lets the engines of a data folder be those of a file elsewhere, such as one that a ConfigMap mounts: the
// folder has a link to it. Commands that would change the file refuse.
func LinkSettings(dir, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("read engines: %w: --engines names a file as %s is", err, SettingsName)
	}
	path := filepath.Join(dir, SettingsName)
	at, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read engines: %w", err)
	case at.Mode()&fs.ModeSymlink == 0:
		return fmt.Errorf("--engines %s: the data folder has engines of its own: move what %s has to that file and "+
			"remove it, or leave --engines out", file, path)
	}
	if linkedTo(dir) == file {
		return nil
	}
	fresh, err := os.MkdirTemp(dir, ".engines-") // of which no other server of this folder has the name
	if err != nil {
		return fmt.Errorf("link engines: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	link := filepath.Join(fresh, SettingsName)
	if err := os.Symlink(file, link); err != nil {
		return fmt.Errorf("link engines: %w", err)
	}
	if err := os.Rename(link, path); err != nil {
		return fmt.Errorf("link engines: %w", err)
	}
	return nil
}

// linkedTo is the file elsewhere that the engines of a data folder are in; "": they are its own.
func linkedTo(dir string) string {
	file, err := os.Readlink(filepath.Join(dir, SettingsName))
	if err != nil {
		return ""
	}
	return file
}

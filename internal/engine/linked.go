package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LinkSettings makes a data folder use the engines of a file elsewhere, such as one that a
// ConfigMap mounts, through a symbolic link. Commands that would change the file refuse to.
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
	fresh, err := os.MkdirTemp(dir, ".engines-") // a name that no other server of this folder uses
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

// linkedTo returns the file that the data folder's settings link to, or "".
func linkedTo(dir string) string {
	file, err := os.Readlink(filepath.Join(dir, SettingsName))
	if err != nil {
		return ""
	}
	return file
}

package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// MakeAside creates a folder with the mark in its name beside dir, or in dir if dir is a mount or its parent is not
// writable. Its content can then be renamed into place.
func MakeAside(dir, mark string) (string, error) {
	name := "." + filepath.Base(dir) + mark
	here, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	above, err := os.Stat(filepath.Dir(dir))
	if err == nil && device(here) == device(above) {
		if at, err := os.MkdirTemp(filepath.Dir(dir), name); err == nil {
			return at, nil
		}
	}
	return os.MkdirTemp(dir, name)
}

// Swap moves the content of dir to old and puts fresh in its place. If dir cannot be renamed, as with a mount, Swap
// moves fresh's content into it; a kill during that leaves a mixture, which the next restore replaces.
func Swap(dir, fresh, old string) error {
	stat, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(fresh, dir+string(filepath.Separator)) {
		if err := os.Chmod(fresh, stat.Mode().Perm()); err != nil {
			return err
		}
		if err := os.Rename(dir, old); err == nil {
			if err := os.Rename(fresh, dir); err != nil {
				return errors.Join(err, os.Rename(old, dir))
			}
			return nil
		}
	}
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	if err := moveAll(dir, old, filepath.Dir(fresh)); err != nil {
		return fmt.Errorf("empty %s: %w", dir, err)
	}
	return moveAll(fresh, dir, "")
}

// moveAll renames the content of from, except one path, into to.
func moveAll(from, to, except string) error {
	names, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, n := range names {
		at := filepath.Join(from, n.Name())
		if at == except {
			continue
		}
		if err := os.Rename(at, filepath.Join(to, n.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes a folder of ours, even if its content is not writable. The next restore removes what remains.
func Drop(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(at, 0o700) // emptying a folder requires entering it
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// RestoreMark is in the name of every folder that a restore fills.
const RestoreMark = ".scrimp-restore-"

// Clean removes what captures and restores of a killed agent left beside and in dir.
func Clean(dir string) {
	for _, at := range []string{filepath.Dir(dir), dir} {
		names, err := os.ReadDir(at)
		if err != nil {
			continue // the next operation reports what is wrong with it
		}
		for _, n := range names {
			for _, mark := range []string{captureMark, RestoreMark} {
				if strings.HasPrefix(n.Name(), "."+filepath.Base(dir)+mark) {
					Drop(filepath.Join(at, n.Name()))
				}
			}
		}
	}
}

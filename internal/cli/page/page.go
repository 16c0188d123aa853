// Package page protects the files that commands write as pages.
package page

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a page if MayWrite allows it.
func Write(path, begin, kind string, force bool, body []byte) error {
	if err := MayWrite(path, begin, kind, force); err != nil {
		return err
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// MayWrite returns an error unless a page may be written to path: as a new file in an existing folder, or in place of
// an earlier page of the same kind, such as "receipt"; all of them start with begin. force allows replacing any file. A
// pipe or a device is always allowed.
func MayWrite(path, begin, kind string, force bool) error {
	if err := mayWrite(path, begin, kind, force); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func mayWrite(path, begin, kind string, force bool) error {
	if path == "-" { // elsewhere it stands for stdin
		return errors.New("it is not a file: name one, such as page.html; /dev/stdout prints the page")
	}
	dir := filepath.Dir(path)
	if at, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: make it first", dir)
	} else if err == nil && !at.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	at, err := os.Stat(path)
	switch {
	case err == nil && at.IsDir():
		return errors.New("it is a folder: name a file in it")
	case force || err == nil && !at.Mode().IsRegular():
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return errors.New("it links to a file that does not exist: name another file, or use --force to create that one")
		}
		return nil
	case err != nil:
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	found := make([]byte, len(begin))
	if _, err := io.ReadFull(f, found); err != nil || string(found) != begin {
		return fmt.Errorf("the existing file is not a %s: --force replaces it, or name another file", kind)
	}
	return nil
}

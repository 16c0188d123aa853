package jobs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"scrimp/internal/decide/receipt"
)

// mayWrite returns an error unless a receipt page may be written to path: as a new file in an existing folder, or in
// place of an earlier receipt. force allows replacing any file. A pipe or a device is always allowed.
func mayWrite(path string, force bool) error {
	dir := filepath.Dir(path)
	if at, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: make it first", dir)
	} else if err == nil && !at.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
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
	begin := make([]byte, len(receipt.PageBegin))
	if _, err := io.ReadFull(f, begin); err != nil || string(begin) != receipt.PageBegin {
		return errors.New("the existing file is not a receipt: --force replaces it, or name another file")
	}
	return nil
}

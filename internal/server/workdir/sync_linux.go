package workdir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll flushes the file system of a folder to disk.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

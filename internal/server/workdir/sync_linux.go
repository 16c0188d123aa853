package workdir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll makes durable what was written to the file system of a folder.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncAll flushes the file system of a folder to disk.
func SyncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

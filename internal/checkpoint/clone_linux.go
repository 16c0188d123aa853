package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// clone copies a file by sharing its blocks. It returns false where the file
// system cannot, and leaves nothing then.
func clone(from, to string) (done bool, err error) {
	in, err := os.Open(from)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) != nil {
		return false, os.Remove(to)
	}
	return true, nil
}

func inode(stat fs.FileInfo) uint64 {
	if s, ok := stat.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

func device(stat fs.FileInfo) uint64 {
	if s, ok := stat.Sys().(*syscall.Stat_t); ok {
		return s.Dev
	}
	return 0
}

package folderblob

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// newAside creates a file without a name in dir, or one with a name if the file system does not support that
// (O_TMPFILE works on ext4, xfs, btrfs and tmpfs, and not on NFS).
func newAside(dir string) (*aside, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	switch err {
	case nil:
		return &aside{file: os.NewFile(uintptr(fd), filepath.Join(dir, asidePrefix))}, nil
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL:
		return namedAside(dir)
	}
	return nil, &fs.PathError{Op: "create in", Path: dir, Err: err}
}

// appear gives the file its name. With absent it fails with fs.ErrExist if the name is taken.
func (a *aside) appear(path string, absent bool) error {
	if a.name == "" {
		err := a.link(path)
		if absent || !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Only a replacement of a blob needs a temporary name for the file.
		to := filepath.Join(filepath.Dir(path), asidePrefix+rand.Text())
		if err := a.link(to); err != nil {
			return err
		}
		a.name = to
	}
	if absent {
		return os.Link(a.name, path)
	}
	if err := os.Rename(a.name, path); err != nil {
		return err
	}
	a.name = ""
	return nil
}

// link names a file that has no name.
func (a *aside) link(to string) error {
	from := fmt.Sprintf("/proc/self/fd/%d", a.file.Fd())
	if err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: err}
	}
	return nil
}

func inode(stat fs.FileInfo) uint64 {
	if s, ok := stat.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

// startWriting tells the disk to start on n bytes from offset, or on everything from there if n is 0. It is a hint:
// an error here returns at the sync.
func startWriting(f *os.File, offset, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, n, unix.SYNC_FILE_RANGE_WRITE)
}

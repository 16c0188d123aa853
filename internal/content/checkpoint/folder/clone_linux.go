package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"scrimp/internal/lib/size"
)

// clone copies a file by sharing its blocks. It returns false, and leaves nothing, if the file system cannot.
func clone(in *os.File, to string) (done bool, err error) {
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

// link gives an open file another name: that file itself, whatever is at its path by now.
func link(in *os.File, _, to string) error {
	at := "/proc/self/fd/" + strconv.Itoa(int(in.Fd()))
	return unix.Linkat(unix.AT_FDCWD, at, unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
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

// room refuses a copy for which the folder's disk has no space, before it takes the program's remaining space.
func room(in *os.File, dir string) error {
	var disk syscall.Statfs_t
	stat, err := in.Stat()
	if err != nil {
		return err
	}
	s, ok := stat.Sys().(*syscall.Stat_t)
	if !ok || syscall.Statfs(dir, &disk) != nil || disk.Blocks == 0 {
		return nil // the free space is unknown
	}
	left := disk.Bavail
	if os.Geteuid() == 0 {
		left = disk.Bfree
	}
	takes, free := min(s.Size, s.Blocks*512), int64(left)*disk.Bsize // without the holes of a sparse file
	if takes > free {
		return fmt.Errorf("a copy of %s takes %v, and %v of its disk is free: %w: make room there", stat.Name(),
			size.Bytes(takes), size.Bytes(free), syscall.ENOSPC)
	}
	return nil
}

// copyData copies a file with its holes, so that a copy takes no more of the disk than the file's data.
func copyData(out, in *os.File) error {
	for at := int64(0); ; {
		data, err := in.Seek(at, unix.SEEK_DATA)
		switch {
		case errors.Is(err, syscall.ENXIO): // a hole up to its end
			return nil
		case err != nil && at == 0: // the file system does not report holes
			return copyWhole(out, in)
		case err != nil:
			return err
		}
		if at, err = in.Seek(data, unix.SEEK_HOLE); err != nil {
			return err
		}
		_, err = in.Seek(data, io.SeekStart)
		if err == nil {
			_, err = out.Seek(data, io.SeekStart)
		}
		if err == nil {
			_, err = io.CopyN(out, in, at-data)
		}
		if errors.Is(err, io.EOF) {
			return ErrChanged
		}
		if err != nil {
			return err
		}
	}
}

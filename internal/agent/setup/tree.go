package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"scrimp/internal/lib/confined"
)

// plain contains the mode bits that a copy preserves. A tree with other bits, such as set-user-ID,
// a pipe or a device, is not copied.
const plain = fs.ModePerm | fs.ModeDir | fs.ModeSymlink

// walk visits a tree. It does not follow links, since a program may have made them.
func walk(root *os.Root, except string, visit func(name string, info fs.FileInfo) error) error {
	return confined.Walk(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if except != "" && name == filepath.ToSlash(except) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := root.Lstat(name)
		if err != nil {
			return err
		}
		if info.Mode()&^plain != 0 {
			return fmt.Errorf("%s: %w", name, ErrOdd)
		}
		return visit(name, info)
	})
}

// scan returns a digest of names, sizes, modes and times, and the total size of all files. The
// digest changes if someone writes to a file between two scans. With disk, the digest also covers
// inode numbers and change times, which nobody can set, so that a copy of the files has a different
// one.
func scan(trees []Tree, disk bool) (digest string, size int64, err error) {
	sum := sha256.New()
	for _, t := range trees {
		_, _ = fmt.Fprintf(sum, "%q\n", t.Name)
		root, err := os.OpenRoot(t.Path)
		if err != nil {
			return "", 0, err
		}
		err = walk(root, t.Except, func(name string, info fs.FileInfo) error {
			link, bytes, at := "", int64(0), info.ModTime().UnixNano()
			switch {
			case info.Mode().IsRegular():
				bytes = info.Size()
			case info.Mode()&fs.ModeSymlink != 0:
				if link, err = root.Readlink(name); err != nil {
					return err
				}
			}
			size += bytes
			_, _ = fmt.Fprintf(sum, "%q %o %d %d %q", name, info.Mode(), bytes, at, link)
			if disk && name != "." { // publish renames the folder itself
				_, _ = fmt.Fprint(sum, " ", stamp(info))
			}
			_, _ = fmt.Fprintln(sum)
			return nil
		})
		if err := errors.Join(err, root.Close()); err != nil {
			return "", 0, err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), size, nil
}

// Marks returns a digest of the names, sizes, modes and times in a folder. It reads no file.
func Marks(path string) (string, error) {
	digest, _, err := scan([]Tree{{Path: path}}, false)
	return digest, err
}

// Content returns a digest of the names, modes and contents in a folder, without times.
func Content(ctx context.Context, path string) (string, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }() // only read
	sum := sha256.New()
	err = walk(root, "", func(name string, info fs.FileInfo) error {
		if err := context.Cause(ctx); err != nil || name == "." {
			return err
		}
		_, _ = fmt.Fprintf(sum, "%q %o ", name, info.Mode())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := root.Readlink(name)
			_, _ = fmt.Fprintf(sum, "%q", link)
			if err != nil {
				return err
			}
		case info.Mode().IsRegular():
			content := sha256.New()
			if err := readTo(content, root, name); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(sum, "%x", content.Sum(nil))
		}
		_, _ = fmt.Fprintln(sum)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// readTo reads a regular file. It does not block if a pipe has replaced the file meanwhile.
func readTo(to io.Writer, root *os.Root, name string) error {
	in, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", name, ErrMoving)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(to, in) // io.Copy uses the kernel's copy, which shares blocks if the file system can
	return err
}

// copyTree copies the content of a folder into another one, with modes, times and links. It reads
// and writes through no link.
func copyTree(ctx context.Context, from, to, except string) (err error) {
	in, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	type folder struct {
		name string
		info fs.FileInfo
	}
	var folders []folder // set modes and times last, since filling a folder changes them
	err = walk(in, except, func(name string, info fs.FileInfo) error {
		switch {
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case info.IsDir():
			folders = append(folders, folder{name, info})
			return out.MkdirAll(name, 0o700)
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := in.Readlink(name)
			if err != nil {
				return err
			}
			return out.Symlink(link, name)
		}
		return copyFile(in, out, name, info)
	})
	for i := len(folders) - 1; i >= 0 && err == nil; i-- {
		f := folders[i]
		err = errors.Join(out.Chmod(f.name, f.info.Mode().Perm()), out.Chtimes(f.name, f.info.ModTime(), f.info.ModTime()))
	}
	return err
}

func copyFile(in, out *os.Root, name string, info fs.FileInfo) error {
	f, err := out.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(readTo(f, in, name), f.Chmod(info.Mode().Perm()), f.Close()); err != nil {
		return err
	}
	return out.Chtimes(name, info.ModTime(), info.ModTime())
}

// emptyBut removes the content of a folder except what is below a path in it.
func emptyBut(dir, except string) error {
	first, rest, _ := strings.Cut(filepath.ToSlash(except), "/")
	names, err := os.ReadDir(dir)
	for _, n := range names {
		path := filepath.Join(dir, n.Name())
		switch {
		case n.Name() != first || !n.IsDir():
			err = errors.Join(err, remove(path))
		case rest != "":
			err = errors.Join(err, emptyBut(path, rest))
		}
	}
	return err
}

// remove removes a folder, even if parts of it are write-protected.
func remove(path string) error {
	err := os.RemoveAll(path)
	if err == nil || os.Geteuid() == 0 { // root needs no chmod, which could follow another user's path
		return err
	}
	_ = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(at, 0o700) // removing files in a folder requires write and search permission
		}
		return err
	})
	return os.RemoveAll(path)
}

// Disk returns the free and the total bytes of a file system.
func Disk(dir string) (free, whole int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("get the free space of %s: %w", dir, err)
	}
	size := int64(s.Bsize)                                     //nolint:unconvert // 32 bits on other systems
	return int64(s.Bavail) * size, int64(s.Blocks) * size, nil // no disk has 2^63 bytes
}

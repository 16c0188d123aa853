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

// plain are the bits that a copy has too. What else a mode says (a user to run as, a pipe,
// a device) is not copied, and neither is the tree that it is found in.
const plain = fs.ModePerm | fs.ModeDir | fs.ModeSymlink

// walk visits a tree without following its links: a program may have made them.
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

// scan is a digest of names, sizes, modes and times, and the size of all files. A file that
// was written to between two scans has another one. With disk it is that of these very
// files, and a copy of them has another one: nobody sets the time of a file's last change.
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
			if disk && name != "." { // its own folder is renamed
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

// Marks is a digest of names, sizes, modes and times in a folder; it reads no file.
func Marks(path string) (string, error) {
	digest, _, err := scan([]Tree{{Path: path}}, false)
	return digest, err
}

// Content is a digest of names, modes and contents in a folder, whatever their times.
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

// readTo reads a plain file; what was put in its place meanwhile is not waited for.
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
	_, err = io.Copy(to, in) // the kernel's copy, which shares blocks where the file system can
	return err
}

// copyTree copies what lies in one folder into another, with modes, times and links. It
// reads and writes through no link.
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
	var folders []folder // their modes and times change with what is put into them
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

// emptyBut empties a folder but for what lies at a path below it.
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

// remove removes a folder, also where some of it may not be written to.
func remove(path string) error {
	err := os.RemoveAll(path)
	if err == nil || os.Geteuid() == 0 { // who may write anywhere changes no mode on a path of another user's
		return err
	}
	_ = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(at, 0o700) // a folder must be entered to be emptied
		}
		return err
	})
	return os.RemoveAll(path)
}

// disk says how much room a file system has for us, and how large it is.
func disk(dir string) (free, whole int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("look at the disk of %s: %w", dir, err)
	}
	size := int64(s.Bsize)                                     //nolint:unconvert // 32 bits on other systems
	return int64(s.Bavail) * size, int64(s.Blocks) * size, nil // no disk has 2^63 bytes
}

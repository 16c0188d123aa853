// Package workdir takes the work folders of jobs in: copied on this machine, or sent as a tar file.
package workdir

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxWork is the largest work folder that is copied.
const maxWork = 2 << 30

// Copy copies a folder without what .scrimpignore and habit leave out,
// and never the data folder itself.
func Copy(from, to, data string) error {
	ignored, err := ignoreFile(from)
	if err != nil {
		return err
	}
	total := int64(0)
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		if path == data || ignored(rel, e.IsDir()) {
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case e.IsDir():
			return os.MkdirAll(target, 0o700)
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !info.Mode().IsRegular():
			return nil
		}
		if total += info.Size(); total > maxWork {
			return fmt.Errorf("%s holds more than 2 GiB: leave data out with a file .scrimpignore in git's form", from)
		}
		return copyFile(path, target, info.Mode().Perm())
	})
}

func copyFile(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode|0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// Pack writes a folder as Copy would copy it, as a tar file in gzip.
// What lies in skip is left out.
func Pack(w io.Writer, from, skip string) error {
	ignored, err := ignoreFile(from)
	if err != nil {
		return err
	}
	return pack(w, from, func(path, rel string, dir bool) bool { return path == skip || ignored(rel, dir) })
}

// PackAll writes all of a folder as Pack does.
func PackAll(w io.Writer, from string) error {
	return pack(w, from, func(string, string, bool) bool { return false })
}

func pack(w io.Writer, from string, out func(path, rel string, dir bool) bool) error {
	zip := gzip.NewWriter(w)
	t := tar.NewWriter(zip)
	total := int64(0)
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		if out(path, rel, e.IsDir()) {
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			total += info.Size()
		}
		if total > maxWork {
			return fmt.Errorf("%s holds more than 2 GiB: leave data out with a file .scrimpignore in git's form", from)
		}
		return packOne(t, path, rel, info)
	})
	return errors.Join(err, t.Close(), zip.Close())
}

// packOne packs a folder, a link or a file; what is none of these is left out.
func packOne(t *tar.Writer, path, rel string, info fs.FileInfo) error {
	link := ""
	var err error
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	case !mode.IsDir() && !mode.IsRegular():
		return nil
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname, h.Uid, h.Gid = filepath.ToSlash(rel), "", "", 0, 0
	if err := t.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.CopyN(t, f, info.Size())
	return err
}

// Limits of a folder that is sent. A path in a tar file may be a mebibyte long, and
// each name in it would be a folder.
const (
	maxFiles    = 200_000
	longestPath = 4096 // bytes
	deepest     = 64   // folders within one another
)

// Unpack fills a folder from what Pack wrote. Nothing is written outside of it,
// whatever the names and links say.
func Unpack(r io.Reader, to string) error {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	t, total, folders := tar.NewReader(zip), int64(0), 0
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		total, folders = total+h.Size, folders+strings.Count(h.Name, "/")
		switch {
		case len(h.Name) > longestPath || len(h.Linkname) > longestPath || strings.Count(h.Name, "/") > deepest:
			return fmt.Errorf("the path %.40s… is longer than %d bytes or deeper than %d folders", h.Name, longestPath, deepest)
		case folders > 10*maxFiles:
			return fmt.Errorf("the folder holds more than %d folders", 10*maxFiles)
		case total > maxWork || n >= maxFiles:
			return fmt.Errorf("the folder holds more than 2 GiB or %d files", maxFiles)
		}
		if err := unpackOne(root, h, t); err != nil {
			return err
		}
	}
}

// unpackOne makes a folder, a link or a file, and the folders that it lies in.
func unpackOne(root *os.Root, h *tar.Header, from io.Reader) error {
	name := filepath.FromSlash(h.Name)
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(filepath.Clean(name), 0o700)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		return writeOne(root, name, h, from)
	}
	return fmt.Errorf("%s is neither a file, a folder nor a link", h.Name)
}

func writeOne(root *os.Root, name string, h *tar.Header, from io.Reader) (err error) {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, fs.FileMode(h.Mode).Perm()|0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.CopyN(f, from, h.Size)
	return err
}

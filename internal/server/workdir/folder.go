// Package workdir stores the work folders of jobs by content: copied on this host, or sent as a tar file.
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
	"slices"
	"strings"

	"scrimp/internal/server/disk"
)

// Pack writes a folder as a tar file in gzip, without what .scrimpignore and the default patterns exclude. It also
// excludes the path skip.
func Pack(w io.Writer, from, skip string) error {
	ignored, err := ignoreFile(from)
	if err != nil {
		return err
	}
	return pack(w, from, func(path, rel string, dir bool) bool { return path == skip || ignored(rel, dir) })
}

// PackAll writes a whole folder like Pack.
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
			total += disk.OnDisk(min(info.Size(), maxWork))
		}
		if total > maxWork {
			return fmt.Errorf("pack %s: %w", from, errLarge)
		}
		return packOne(t, path, rel, info)
	})
	return errors.Join(err, t.Close(), zip.Close())
}

// packOne writes a folder, a link or a file, and skips anything else.
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
	if link != "" {
		h.Linkname = relativeLink(strings.TrimSuffix(path, rel), rel, link)
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

// Unpack fills a folder from the output of Pack. It writes nothing outside the folder, whatever the names and links
// say.
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
	t, held, folders := tar.NewReader(&atMost{from: zip, left: maxStream}), count{}, 0
	var made []*tar.Header // folders, some of which are read-only in the end
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return setModes(root, made)
		}
		if err != nil {
			return err
		}
		name := entryOf(h)
		if name == "" {
			continue
		}
		if err := held.add(name, h.Linkname, h.Size); err != nil {
			return err
		}
		if folders += strings.Count(name, "/"); folders > 10*maxFiles {
			return fmt.Errorf("the folder holds more than %d folders", 10*maxFiles)
		}
		if err := unpackOne(root, name, h, t); err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			made = append(made, h)
		}
	}
}

// setModes restores the modes of folders, inner ones first.
func setModes(root *os.Root, made []*tar.Header) error {
	for _, h := range slices.Backward(made) {
		if err := root.Chmod(filepath.FromSlash(entryOf(h)), fs.FileMode(h.Mode).Perm()); err != nil {
			return err
		}
	}
	return nil
}

// unpackOne makes a folder, a link or a file, with its parent folders.
func unpackOne(root *os.Root, path string, h *tar.Header, from io.Reader) error {
	name := filepath.FromSlash(path)
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o700)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		return writeOne(root, name, h, from)
	}
	return fmt.Errorf("%s is neither a file, a folder nor a link", quote(path))
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

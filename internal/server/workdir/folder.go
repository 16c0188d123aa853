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

	"scrimp/internal/server/workdir/flow"
)

// Unpack fills a folder from the output of pack.Pack. It writes nothing outside the folder, whatever the names and
// links say.
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
	t, held, folders := tar.NewReader(&flow.AtMost{From: zip, Left: maxStream, What: "the folder"}), count{}, 0
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

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// localFolder returns the path that source names, where it is a folder of this machine.
func localFolder(source string) (string, bool) {
	if filepath.IsAbs(source) {
		return filepath.Clean(source), true
	}
	if u, err := url.Parse(source); err == nil && u.Scheme == "file" && u.RawQuery == "" && u.Fragment == "" {
		return filepath.FromSlash(u.Path), true
	}
	return "", false
}

// copyFolder copies the folder from into to, which may exist: files, folders,
// links and permissions. What else lies in a folder (sockets, devices) is passed over.
func copyFolder(ctx context.Context, from, to string) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			// The owner can always write, or the files below could not be made.
			return os.MkdirAll(target, info.Mode().Perm()|0o700)
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return os.Symlink(link, target)
		case info.Mode().IsRegular():
			return copyFile(path, target, info)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("copy work folder %s: %w", from, err)
	}
	return nil
}

func copyFile(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime()) // build tools look at it
}

// inside joins a name from outside to folder dir, and refuses one that leads out of it.
func inside(dir, name string) (string, error) {
	clean := filepath.FromSlash(strings.TrimPrefix(name, "/"))
	if clean == "" || !filepath.IsLocal(clean) {
		return "", fmt.Errorf("name %q leads out of its folder", name)
	}
	return filepath.Join(dir, clean), nil
}

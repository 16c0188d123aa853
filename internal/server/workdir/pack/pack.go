// Package pack writes a work folder as a tar file, without what .scrimpignore and the default patterns exclude.
package pack

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

	"scrimp/internal/lib/quiet"
	"scrimp/internal/server/disk"
)

// Pack writes a folder as a tar file in gzip, without what .scrimpignore and the default patterns exclude. It also
// excludes the path skip.
func Pack(w io.Writer, from, skip string) error {
	ignored, err := Ignored(from)
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
			total += disk.OnDisk(min(info.Size(), MaxWork))
		}
		if total > MaxWork {
			return fmt.Errorf("pack %s: %w", from, ErrLarge)
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
	f, err := quiet.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.CopyN(t, f, info.Size())
	return err
}

// relativeLink makes an absolute link into its own folder relative, because the folder has another path elsewhere.
func relativeLink(folder, rel, target string) string {
	if !filepath.IsAbs(target) {
		return target
	}
	to, err := filepath.Rel(folder, target)
	if err != nil || !filepath.IsLocal(to) {
		return target
	}
	short, err := filepath.Rel(filepath.Dir(rel), to)
	if err != nil {
		return target
	}
	return filepath.ToSlash(short)
}

// MaxWork bounds the files of a work folder, in bytes of disk.
const MaxWork = 2 << 30

// ErrLarge is the error of a folder that is larger than a job may send.
var ErrLarge = fmt.Errorf("the folder takes more than %d GiB of disk, each file %d KiB at least: leave data out "+
	"with a file .scrimpignore in git's form", MaxWork>>30, disk.Block>>10)

package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// File is an entry of an archive: a folder if its path ends in a slash, a symbolic link if Link is set, and a plain
// file otherwise.
type File struct {
	Path, Link string
	Body       []byte
	Mode       int64 // permissions; zero means 0644, for folders 0755, for links 0777
	Owner      int   // user and group, by number; zero is root
}

// Tar returns a tar archive of the files in the order of their paths, with the folders above them. Every entry has the
// time when, and prefix stands before each path. A later file replaces an earlier one with the same path. Equal input
// gives equal bytes.
func Tar(files []File, prefix string, when time.Time) ([]byte, error) {
	all := map[string]File{}
	for _, f := range files {
		f.Path = strings.TrimPrefix(f.Path, "/")
		all[f.Path] = f
		for dir := path.Dir(strings.TrimSuffix(f.Path, "/")); dir != "."; dir = path.Dir(dir) {
			if _, there := all[dir+"/"]; !there {
				all[dir+"/"] = File{Path: dir + "/"}
			}
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		if err := w.WriteHeader(f.header(prefix, when)); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Body); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func (f File) header(prefix string, when time.Time) *tar.Header {
	h := &tar.Header{Name: prefix + f.Path, Typeflag: tar.TypeReg, Size: int64(len(f.Body)), Mode: 0o644, ModTime: when,
		Uid: f.Owner, Gid: f.Owner, Format: tar.FormatGNU}
	switch {
	case strings.HasSuffix(f.Path, "/"):
		h.Typeflag, h.Mode = tar.TypeDir, 0o755
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
	}
	if f.Mode != 0 {
		h.Mode = f.Mode
	}
	if f.Owner == 0 {
		h.Uname, h.Gname = "root", "root"
	}
	return h
}

// Gzip compresses b and stores neither a name nor a time, so that equal input gives equal bytes.
func Gzip(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

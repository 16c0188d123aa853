package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file, or with a slash at the end of its name a folder.
type entry struct {
	name  string
	body  []byte
	mode  int64 // 0: 0644, of folders 0755
	owner int
}

// tarball writes the files in the order of their names, the folders above them before them, all of one time.
func tarball(list []entry, before string, when time.Time) ([]byte, error) {
	all := map[string]entry{}
	for _, e := range list {
		all[e.name] = e
		for dir := path.Dir(strings.TrimSuffix(e.name, "/")); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if _, there := all[dir+"/"]; !there {
				all[dir+"/"] = entry{name: dir + "/"}
			}
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		h := &tar.Header{Name: before + name, Typeflag: tar.TypeReg, Size: int64(len(e.body)), Mode: e.mode, ModTime: when,
			Uid: e.owner, Gid: e.owner, Format: tar.FormatGNU}
		if e.owner == 0 {
			h.Uname, h.Gname = "root", "root"
		}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if h.Mode == 0 {
			h.Mode = 0o644
			if h.Typeflag == tar.TypeDir {
				h.Mode = 0o755
			}
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.body); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// compress is gzip without a name and a time.
func compress(b []byte) ([]byte, error) {
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

// archive is the program with its manual, in one folder.
func (p parts) archive(stem string) ([]byte, error) {
	list := []entry{{name: "bin/scrimp", body: p.binary, mode: 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(p.Root, name))
		if err != nil {
			return nil, err
		}
		list = append(list, entry{name: name, body: text})
	}
	all, err := tarball(append(list, p.manual...), stem+"/", p.When)
	if err != nil {
		return nil, err
	}
	return compress(all)
}

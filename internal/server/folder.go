package server

import (
	"archive/tar"
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/blob"
	"scrimp/internal/checkpoint"
	"scrimp/internal/identity"
)

// maxWork is the largest work folder that is copied.
const maxWork = 2 << 30

// copyFolder copies a folder without what .scrimpignore and habit leave out,
// and never the data folder itself.
func copyFolder(from, to, data string) error {
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

// Pack writes a folder as copyFolder would copy it, as a tar file in gzip.
// What lies in skip is left out.
func Pack(w io.Writer, from, skip string) error {
	ignored, err := ignoreFile(from)
	if err != nil {
		return err
	}
	return pack(w, from, func(path, rel string, dir bool) bool { return path == skip || ignored(rel, dir) })
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

// uploads are kept for a day: a submission that is sent again finds them.
const keepUploads = 24 * time.Hour

// uploadName is what postWork gives.
var uploadName = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (s *Server) uploads(c identity.Caller) string {
	return filepath.Join(s.opts.Dir, "uploads", c.User)
}

// postWork takes a work folder, for a submission that follows.
func (s *Server) postWork(w http.ResponseWriter, r *http.Request) {
	dir := s.uploads(callerOf(r))
	if free, ok := s.disk.room(s.opts.Dir, time.Now()); ok && free < logReserve+max(0, r.ContentLength) {
		problem(w, http.StatusInsufficientStorage, "the server's disk has no room for the folder",
			"make room on it, or leave data out with a file .scrimpignore", nil)
		return
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		problem(w, http.StatusInternalServerError, "the folder was not kept", "see the server's log", err)
		return
	}
	if old, err := os.ReadDir(dir); err == nil {
		for _, e := range old {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keepUploads {
				_ = os.Remove(filepath.Join(dir, e.Name())) // the next one tries again
			}
		}
	}
	var chance [16]byte
	_, _ = rand.Read(chance[:]) // it never fails
	name := hex.EncodeToString(chance[:])
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err == nil {
		_, err = io.Copy(f, &roomy{s: s, from: http.MaxBytesReader(w, r.Body, maxWork)})
		err = errors.Join(err, f.Close())
	}
	if err != nil && f != nil {
		_ = os.Remove(f.Name()) // what is cut short is of no use
	}
	var big *http.MaxBytesError
	switch {
	case errors.Is(err, errNoRoom):
		problem(w, http.StatusInsufficientStorage, "the server's disk has no room for the folder",
			"make room on it, or leave data out with a file .scrimpignore", nil)
	case errors.As(err, &big):
		problem(w, http.StatusRequestEntityTooLarge, "the folder is larger than 2 GiB",
			"leave data out with a file .scrimpignore", nil)
	case err != nil:
		problem(w, http.StatusBadRequest, "the folder did not arrive whole", "send it again", err)
	default:
		callOf(r).act.Object = name
		answer(w, api.Work{Work: name})
	}
}

var errNoRoom = errors.New("the disk has no room")

// roomy reads as long as the server's disk has room beside what the log needs.
type roomy struct {
	s    *Server
	from io.Reader
}

func (r *roomy) Read(p []byte) (int, error) {
	if free, ok := r.s.disk.room(r.s.opts.Dir, time.Now()); ok && free < logReserve {
		return 0, errNoRoom
	}
	return r.from.Read(p)
}

func (s *Server) unpackUpload(c identity.Caller, name, to string) error {
	if !uploadName.MatchString(name) {
		return fmt.Errorf("%q is no name that POST /v1/work gave", name)
	}
	f, err := os.Open(filepath.Join(s.uploads(c), name))
	if err != nil {
		return fmt.Errorf("the folder %s is not here: POST /v1/work sends it, and it is kept for a day", name)
	}
	defer func() { _ = f.Close() }()
	return Unpack(f, to)
}

// getOutputs sends what a job has kept, each file checked against its hash.
func (s *Server) getOutputs(w http.ResponseWriter, r *http.Request) {
	j, ok := s.job(w, r)
	if !ok {
		return
	}
	if j.Outputs == "" {
		problem(w, http.StatusNotFound, j.ID+" has kept no outputs", "name folders in outputs of its job file", nil)
		return
	}
	dir, err := os.MkdirTemp(s.opts.Dir, "outputs-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		// what the agent says is its program's word: it could name another job's, or a host of the server's network
		err = fetch(r, Blobs(s.opts.Dir), j.ID, dir)
	}
	if err != nil {
		problem(w, http.StatusBadGateway, "the outputs were not fetched", "ask again", err)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	if err := pack(w, dir, func(string, string, bool) bool { return false }); err != nil {
		panic(http.ErrAbortHandler) // a part that looked whole would be worse
	}
}

// Blobs is the address of what agents keep in a data folder: outputs and, where the
// job file names no other place, checkpoints.
func Blobs(data string) string { return "file://" + filepath.ToSlash(filepath.Join(data, "blobs")) }

func fetch(r *http.Request, url, job, dir string) error {
	bucket, err := blob.Open(r.Context(), url)
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }()
	_, err = checkpoint.Open(bucket, OwnKeys(job)).Fetch(r.Context(), job, dir)
	return err
}

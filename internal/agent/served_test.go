package agent

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/content/tarball"
)

// serveStore serves the server's own store, and fails in the ways that networks and restarts do.
func (s *fakeServer) serveStore(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down, fenced, cut, lost := s.down, s.fenced, 0, false
	if s.chance != nil && s.chance.Float64() < s.faults {
		down = s.chance.IntN(3) == 0
		lost = !down && s.chance.IntN(2) == 0
		if cut = 1 + s.chance.IntN(2000); lost {
			cut = 0
		}
		s.cuts++
	}
	if s.down {
		s.refused++
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	fenced = fenced || token != s.assignment.AttemptToken
	s.mu.Unlock()
	switch {
	case down:
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	case fenced:
		http.Error(w, "over", http.StatusGone)
		return
	case cut > 0:
		r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, int64(cut)), broken{}))
		w = &cutting{ResponseWriter: w, left: cut}
	case lost:
		w = &cutting{ResponseWriter: w, left: -1}
	}
	if err := s.store(w, r); err != nil {
		http.Error(w, err.Error(), httpblob.Status(err))
	}
	if lost {
		panic(http.ErrAbortHandler) // the work is done, but no response arrives
	}
}

// broken ends the connection when it is read.
type broken struct{}

func (broken) Read([]byte) (int, error) { panic(http.ErrAbortHandler) }

// cutting breaks the connection after some bytes; below 0 it sends nothing.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	if c.left < 0 {
		return len(p), nil
	}
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush() // the connection breaks in any case
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func (s *fakeServer) store(w http.ResponseWriter, r *http.Request) error {
	free := func() error { return nil }
	folder, err := folderblob.New(s.kept)
	if err != nil {
		return err
	}
	h := httpblob.Handler{Folder: folder, Room: func(int) error { return nil }, Live: free,
		Owns: func(key string) bool { return strings.HasPrefix(key, "jobs/job-1/") }}
	switch r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1/agent") {
	case "GET /work":
		if _, err := os.Stat(s.work); s.work != "" && err != nil {
			return err
		}
		f, err := tarball.Scan(s.work)
		if err != nil {
			return err
		}
		write, tag := f.Write, f.Tag()
		if q := r.URL.Query(); s.summed && q.Has("content") {
			e, there, err := summed(s.work).Content(q.Get("content"))
			if err != nil || !there {
				return errors.Join(err, blob.ErrURL)
			}
			s.contents++
			write, tag = e.WriteContent, e.Sum
		} else if s.summed && q.Has("light") {
			write, tag = summed(s.work).Light().Write, tag+"-light"
		}
		return httpblob.Stream(w, r, "application/x-tar", tag, func(offset int64) (uint32, error) {
			return write(context.WithoutCancel(r.Context()), w, offset)
		})
	case "GET /blobs", "HEAD /blobs":
		return h.Read(w, r)
	case "PUT /blobs":
		return h.Write(w, r)
	case "DELETE /blobs":
		return h.Delete(w, r)
	case "GET /blobs/list":
		return h.List(w, r)
	case "POST /blobs/sync":
		return h.Sync(w, r)
	}
	return blob.ErrURL
}

// summed returns the files of a folder with their SHA-256, as the server's store has them.
func summed(dir string) *tarball.Folder {
	return tarball.Of("summed", func(yield func(tarball.Entry, error) bool) {
		names, err := os.ReadDir(dir)
		if err != nil {
			yield(tarball.Entry{}, err)
			return
		}
		for _, n := range names {
			path := filepath.Join(dir, n.Name())
			content, err := os.ReadFile(path)
			sum := sha256.Sum256(content)
			h := &tar.Header{Typeflag: tar.TypeReg, Name: n.Name(), Mode: 0o600, Size: int64(len(content)), Format: tar.FormatPAX}
			if !yield(tarball.Entry{Header: h, Sum: hex.EncodeToString(sum[:]),
				Open: func() (io.ReadCloser, error) { return os.Open(path) }}, err) {
				return
			}
		}
	})
}

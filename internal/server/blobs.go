package server

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"scrimp/internal/blob"
	"scrimp/internal/blob/httpblob"
	"scrimp/internal/core"
	"scrimp/internal/tarball"
)

// OwnKeys is what all keys of a job begin with, in the server's store as in any other.
func OwnKeys(job string) string { return "jobs/" + job + "/" }

// blobs is the folder in which the server keeps what agents send.
type blobs struct {
	mu     sync.Mutex
	folder *blob.Folder // nil until it is wanted
}

func (b *blobs) open(data string) (*blob.Folder, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.folder == nil {
		f, err := blob.NewFolder(filepath.Join(data, "blobs"))
		if err != nil {
			return nil, err
		}
		b.folder = f
	}
	return b.folder, nil
}

// jobOfAttempt returns the job of an attempt that is live.
func (s *Server) jobOfAttempt(attempt string) (job string, live bool) {
	s.control.Read(func(m *core.Machine) {
		if a, ok := m.Attempt(attempt); ok {
			job, live = a.Job(), true
		}
	})
	return job, live
}

// keeper serves the blobs of the job whose agent asks, and nothing else.
func (s *Server) keeper(attempt string) (httpblob.Handler, error) {
	job, live := s.jobOfAttempt(attempt)
	if !live {
		return httpblob.Handler{}, httpblob.ErrOver
	}
	folder, err := s.kept.open(s.opts.Dir)
	if err != nil {
		return httpblob.Handler{}, err
	}
	return httpblob.Handler{
		Folder: folder,
		Owns: func(key string) bool {
			return strings.HasPrefix(key, OwnKeys(job)) && path.Clean(key) == strings.TrimSuffix(key, "/") &&
				!strings.Contains(key, `\`)
		},
		Room: func() error {
			if free, ok := s.disk.room(s.opts.Dir, time.Now()); ok && free < logReserve {
				return fmt.Errorf("%w: %d MiB are free, and %d MiB are kept for the log of events", httpblob.ErrRoom,
					free>>20, logReserve>>20)
			}
			return nil
		},
		Live: func() error {
			if !s.control.Live(attempt) {
				return httpblob.ErrOver
			}
			return nil
		},
	}, nil
}

// moving answers an agent that sends or fetches what is its job's.
func (s *Server) moving(w http.ResponseWriter, r *http.Request, do func(attempt string) error) {
	attempt, ok := s.attempt(w, r)
	if !ok {
		return
	}
	end, err := s.moves.open(attempt, agentMoves, allMoves)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusTooManyRequests, "too much is sent at once", "send less at once, and this again", err)
		return
	}
	defer end()
	err = do(attempt)
	switch {
	case err == nil:
	case errors.Is(err, httpblob.ErrOver):
		problem(w, http.StatusGone, "the attempt is over, and its token with it", "switch the machine off", nil)
	case errors.Is(err, httpblob.ErrOwn):
		problem(w, http.StatusForbidden, "this is not the job's own",
			"a key begins with jobs/, the job's id and a slash, and holds no other path", err)
	case errors.Is(err, httpblob.ErrRoom):
		w.Header().Set("Retry-After", "5")
		problem(w, http.StatusInsufficientStorage, "the server's disk is nearly full",
			"make room on it: the program goes on, and its checkpoint is sent again later", err)
	default:
		// where the data folder lies is no agent's business
		text := strings.ReplaceAll(err.Error(), s.opts.Dir, "the data folder")
		problem(w, httpblob.Status(err), "the store did not do it", "the detail says why", errors.New(text))
	}
}

// onBlobs answers an agent that asks for its job's blobs.
func (s *Server) onBlobs(w http.ResponseWriter, r *http.Request,
	do func(httpblob.Handler, http.ResponseWriter, *http.Request) error) {
	s.moving(w, r, func(attempt string) error {
		h, err := s.keeper(attempt)
		if err != nil {
			return err
		}
		return do(h, w, r)
	})
}

func (s *Server) agentReadBlob(w http.ResponseWriter, r *http.Request) {
	s.onBlobs(w, r, httpblob.Handler.Read)
}

func (s *Server) agentWriteBlob(w http.ResponseWriter, r *http.Request) {
	s.onBlobs(w, r, httpblob.Handler.Write)
}

func (s *Server) agentDeleteBlob(w http.ResponseWriter, r *http.Request) {
	s.onBlobs(w, r, httpblob.Handler.Delete)
}

func (s *Server) agentListBlobs(w http.ResponseWriter, r *http.Request) {
	s.onBlobs(w, r, httpblob.Handler.List)
}

func (s *Server) agentSyncBlobs(w http.ResponseWriter, r *http.Request) {
	s.onBlobs(w, r, httpblob.Handler.Sync)
}

// agentWork sends the job's work folder. Who was cut off asks for what follows.
func (s *Server) agentWork(w http.ResponseWriter, r *http.Request) {
	s.moving(w, r, func(attempt string) error {
		job, live := s.jobOfAttempt(attempt)
		if !live {
			return httpblob.ErrOver
		}
		folder, err := tarball.Scan(filepath.Join(s.opts.Dir, "work", job))
		if err != nil {
			return err
		}
		return httpblob.Stream(w, r, "application/x-tar", folder.Tag(), func(offset int64) (uint32, error) {
			sum, err := folder.Write(r.Context(), w, offset)
			if err != nil {
				s.opts.Log.Warn("work folder not sent whole", "job", job, "error", err)
			}
			return sum, err
		})
	})
}

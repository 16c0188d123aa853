package agents

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/tarball"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/workdir/missing"
	"scrimp/internal/wire/api"
)

const (
	agentMoves = 16   // transfers of one attempt at once
	allMoves   = 1024 // transfers of all attempts: each holds a buffer of 64 KiB
)

// blobs opens the folder for the blobs of agents on first use.
type blobs struct {
	mu     sync.Mutex
	folder *folderblob.Store // nil until the first use
}

func (b *blobs) open(data string) (*folderblob.Store, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.folder == nil {
		f, err := folderblob.New(filepath.Join(data, "blobs"))
		if err != nil {
			return nil, err
		}
		b.folder = f
	}
	return b.folder, nil
}

// jobOfAttempt returns the job of a live attempt.
func (d *Service) jobOfAttempt(attempt string) (job string, live bool) {
	d.Control.Read(func(m *core.Machine) {
		if a, ok := m.Attempt(attempt); ok {
			job, live = a.Job(), true
		}
	})
	return job, live
}

// inputsOf returns the name of the work folder of a live attempt, and what its submission stored.
func (d *Service) inputsOf(attempt string) (name string, is *state.Stored, live bool) {
	d.Control.Read(func(m *core.Machine) {
		if a, ok := m.Attempt(attempt); ok {
			live = true
			name, is = m.State().Work(m.State().Job(a.Job()))
		}
	})
	return name, is, live
}

// lendsWork reports whether the work folder of a live attempt is the one that its submission stored.
func (d *Service) lendsWork(attempt string) bool {
	name, is, live := d.inputsOf(attempt)
	return live && (is == nil || is.Work != "" && missing.Check(d.Folders, name, is.Work) == nil)
}

// work returns the work folder of a job: the one that its submission stored, whatever lies under its name.
func (d *Service) work(name string, is *state.Stored) (*tarball.Folder, error) {
	if is != nil && is.Work == "" {
		return tarball.Of("none", func(func(tarball.Entry, error) bool) {}), nil
	}
	if is != nil { // older releases stored it under the name only
		if err := missing.Check(d.Folders, name, is.Work); err != nil {
			return nil, err
		}
	}
	if err := missing.Whole(d.Folders, name); err != nil {
		return nil, err
	}
	return d.Folders.Tree(name)
}

// blobHandler returns a handler for the blobs of the agent's job only. All machines of a gang may read them; ranks
// above 0 may write only their own outputs and checkpoint parts.
func (d *Service) blobHandler(r *http.Request, attempt string, node int) (httpblob.Handler, error) {
	job, live := d.jobOfAttempt(attempt)
	if !live {
		return httpblob.Handler{}, httpblob.ErrOver
	}
	folder, err := d.blobs.open(d.Dir)
	if err != nil {
		return httpblob.Handler{}, err
	}
	var writes func(key string) bool
	if node > 0 {
		writes = func(key string) bool {
			own, ok := strings.CutPrefix(key, artifacts.OwnKeys(job))
			may := func(parts bool) bool {
				return ok && checkpoint.Writes(node, api.OutputsName(job, node), own, parts)
			}
			return may(false) || may(true) && d.allRanks(r.Context(), job)
		}
	}
	return httpblob.Handler{
		Folder: folder,
		Writes: writes,
		Owns: func(key string) bool {
			return strings.HasPrefix(key, artifacts.OwnKeys(job)) && path.Clean(key) == strings.TrimSuffix(key, "/") &&
				!strings.Contains(key, `\`)
		},
		Room: func(n int) error {
			if n == 0 { // a new blob takes at least a block
				n = disk.Block
			}
			err := d.Room.Full(0)
			if err == nil {
				err = d.Quota(r.Context(), job, int64(n))
			}
			if err != nil {
				return fmt.Errorf("%w: %w", httpblob.ErrRoom, err)
			}
			return nil
		},
		Live: func() error {
			if !d.Control.Live(attempt) {
				return httpblob.ErrOver
			}
			return nil
		},
	}, nil
}

// limitTransfer runs one transfer of an agent within the limits on transfers.
func (d *Service) limitTransfer(w http.ResponseWriter, r *http.Request, do func(attempt string, node int) error) {
	attempt, node, ok := d.Gate.Attempt(w, r)
	if !ok {
		return
	}
	end, err := d.Moves.Open(api.Rank(attempt, node), agentMoves, allMoves)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		reply.Problem(w, http.StatusTooManyRequests, "too many bytes at once", "send less, and repeat it", err)
		return
	}
	defer end()
	err = do(attempt, node)
	switch {
	case err == nil:
	case errors.Is(err, httpblob.ErrOver):
		reply.Problem(w, http.StatusGone, "the attempt is over, and its token with it", "switch the machine off", nil)
	case errors.Is(err, httpblob.ErrOwn):
		reply.Problem(w, http.StatusForbidden, "the key belongs to another job",
			"write a key that begins with jobs/, the job's ID and a slash", err)
	case errors.Is(err, httpblob.ErrRoom):
		w.Header().Set("Retry-After", "5")
		reply.Problem(w, http.StatusInsufficientStorage, "the server's disk is nearly full, or the team has used its own",
			"make room on it: the program goes on, and its checkpoint is sent again later", err)
	case missing.Is(err):
		reply.Problem(w, http.StatusNotFound, "the work folder is missing", "submit the job again from its folder", err)
	default:
		field := ""
		if bad, ok := errors.AsType[*httpblob.ParameterError](err); ok {
			field = bad.Name
		}
		reply.FieldProblem(w, httpblob.Status(err), field, "the store failed", "the detail says why", err)
	}
}

// onBlobs serves a request for the blobs of the agent's job.
func (d *Service) onBlobs(w http.ResponseWriter, r *http.Request,
	do func(httpblob.Handler, http.ResponseWriter, *http.Request) error) {
	d.limitTransfer(w, r, func(attempt string, node int) error {
		h, err := d.blobHandler(r, attempt, node)
		if err != nil {
			return err
		}
		return do(h, w, r)
	})
}

// ReadBlob sends a blob of the job, or a range of it.
func (d *Service) ReadBlob(w http.ResponseWriter, r *http.Request) {
	d.onBlobs(w, r, httpblob.Handler.Read)
}

// WriteBlob stores a blob for the job.
func (d *Service) WriteBlob(w http.ResponseWriter, r *http.Request) {
	d.onBlobs(w, r, httpblob.Handler.Write)
}

// DeleteBlob deletes a blob of the job.
func (d *Service) DeleteBlob(w http.ResponseWriter, r *http.Request) {
	d.onBlobs(w, r, httpblob.Handler.Delete)
}

// ListBlobs lists the job's blobs.
func (d *Service) ListBlobs(w http.ResponseWriter, r *http.Request) {
	d.onBlobs(w, r, httpblob.Handler.List)
}

// SyncBlobs flushes blobs to disk.
func (d *Service) SyncBlobs(w http.ResponseWriter, r *http.Request) {
	d.onBlobs(w, r, httpblob.Handler.Sync)
}

// Work sends the job's work folder. An agent that was cut off asks for the rest as a range.
func (d *Service) Work(w http.ResponseWriter, r *http.Request) {
	d.limitTransfer(w, r, func(attempt string, _ int) error {
		job, is, live := d.inputsOf(attempt)
		if !live {
			return httpblob.ErrOver
		}
		folder, err := d.work(job, is)
		if err != nil {
			return err
		}
		media, of := "application/x-tar", r.URL.Query().Get("content")
		if of == "" && r.URL.Query().Get("light") == "1" {
			folder = folder.Light()
		}
		write, tag := folder.Write, folder.Tag()
		if of != "" {
			file, there, err := folder.Content(of)
			if err != nil || !there {
				return cmp.Or(err, error(&httpblob.ParameterError{Name: "content", Why: "of no file of the folder"}))
			}
			write, tag, media = file.WriteContent, of, "application/octet-stream"
		}
		return httpblob.Stream(w, r, media, tag, func(offset int64) (uint32, error) {
			sum, err := write(r.Context(), w, offset)
			if err != nil {
				d.Errors.Warn("cannot send the whole work folder", "job", job, "error", err)
			}
			return sum, err
		})
	})
}

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"gocloud.dev/blob"

	"scrimp/internal/api"
	ours "scrimp/internal/blob"
	"scrimp/internal/checkpoint"
	"scrimp/internal/core"
	"scrimp/internal/spec"
)

// errNeeded is a checkpoint that its job goes on from.
var errNeeded = errors.New("the job goes on from it")

// latest names the newest checkpoint of a job.
const latest = "latest"

// storeOf is where the checkpoints of a job are. The caller closes the bucket.
func (s *Server) storeOf(ctx context.Context, id string, j spec.Job) (*blob.Bucket, *checkpoint.Store, error) {
	b, err := ours.Open(ctx, cmp.Or(j.Checkpoint.Store, Blobs(s.opts.Dir)))
	if err != nil {
		return nil, nil, err
	}
	return b, checkpoint.Open(b, OwnKeys(id)), nil
}

// seeded is store, with what was copied there where the job began from that.
func seeded(store *checkpoint.Store, j *core.Job) *checkpoint.Store {
	if j.Source() == nil {
		return store.Unseeded()
	}
	return store
}

// withKept calls do with the checkpoints of the job that is asked about, or answers what is wrong.
func (s *Server) withKept(w http.ResponseWriter, r *http.Request, do func(*checkpoint.Store) error) (ok bool) {
	id := r.PathValue("id")
	raw, known, err := s.control.Spec(r.Context(), id)
	if err == nil && !known {
		s.job(w, r)
		return false
	}
	var j spec.Job
	if err == nil {
		j, err = spec.Decode(raw)
	}
	if err == nil {
		var b *blob.Bucket
		var store *checkpoint.Store
		if b, store, err = s.storeOf(r.Context(), id, j); err == nil {
			job, _ := s.copyOf(id)
			err = do(seeded(store, job))
			_ = b.Close()
		}
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, errNeeded):
		problem(w, http.StatusConflict, "job "+id+" goes on from that checkpoint", "scrimp cancel it first, or resume it",
			nil)
	case errors.Is(err, checkpoint.ErrNone):
		problem(w, http.StatusNotFound, "there is no such checkpoint", "scrimp checkpoints "+id+" lists them", nil)
	default:
		problem(w, http.StatusBadGateway, "the store of checkpoints did not do it", "ask again", err)
	}
	return false
}

func (s *Server) getCheckpoints(w http.ResponseWriter, r *http.Request) {
	list := []api.Checkpoint{}
	ok := s.withKept(w, r, func(store *checkpoint.Store) error {
		all, err := store.List(r.Context())
		newest := true
		for _, l := range all {
			if l.Fenced { // of an attempt that had lost its place: nothing is ever restored from it
				continue
			}
			c := api.Checkpoint{Name: l.Name, Attempt: l.Attempt, Step: l.Step, Captured: l.Captured, Bytes: l.Bytes,
				Files: len(l.Files), Metrics: l.Metrics}
			if l.Damaged != nil {
				c.Damaged = l.Damaged.Error()
			} else {
				c.Newest, newest = newest, false
			}
			list = append(list, c)
		}
		return err
	})
	if ok {
		answer(w, list)
	}
}

// getCheckpoint sends the files of a checkpoint, each checked against its hash.
func (s *Server) getCheckpoint(w http.ResponseWriter, r *http.Request) {
	dir, err := os.MkdirTemp(s.opts.Dir, "checkpoint-")
	if err != nil {
		problem(w, http.StatusInsufficientStorage, "no room for the checkpoint", "make room on the server's disk", err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if !s.withKept(w, r, func(store *checkpoint.Store) error {
		name := r.PathValue("name")
		if name == latest {
			name = ""
		}
		m, err := store.Find(r.Context(), name)
		if err != nil {
			return err
		}
		return store.Export(r.Context(), m, dir)
	}) {
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	if err := pack(w, dir, func(string, string, bool) bool { return false }); err != nil {
		panic(http.ErrAbortHandler) // a part that looked whole would be worse
	}
}

// deleteCheckpoint removes a checkpoint of a job that holds no machine: while it does, its
// agent writes there, and removes old ones by itself.
func (s *Server) deleteCheckpoint(w http.ResponseWriter, r *http.Request) {
	id, name := r.PathValue("id"), r.PathValue("name")
	defer s.alone("terms " + id)() // it is not resumed meanwhile
	j, found := s.copyOf(id)
	switch {
	case !found:
		s.job(w, r)
		return
	case j.Costs() || j.State() == core.Running || j.State() == core.Queued:
		problem(w, http.StatusConflict, fmt.Sprintf("job %s is %s", id, j.State()),
			"its agent removes old checkpoints as checkpoint.keep says; scrimp pause it, or wait until it is over", nil)
		return
	}
	if !s.withKept(w, r, func(store *checkpoint.Store) error {
		if !j.State().Over() {
			m, err := store.Find(r.Context(), "")
			if err != nil {
				return err
			}
			if m.Name == name {
				return errNeeded
			}
		}
		return store.Remove(r.Context(), name)
	}) {
		return
	}
	if err := s.tell(r, id+"@"+name); err != nil {
		problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// seed copies a checkpoint of another job to a new one, which begins from it.
func (s *Server) seed(ctx context.Context, id string, j spec.Job, from string) (*core.Source, *refusal) {
	other, name, _ := strings.Cut(from, "@")
	if name == latest {
		name = ""
	}
	if j.Checkpoint.Dir == "" {
		return nil, &refusal{status: http.StatusUnprocessableEntity, field: "checkpoint.dir",
			title: "a job that keeps no checkpoints cannot begin from one", fix: "write checkpoint.dir in its job file"}
	}
	m, err := s.copyCheckpoint(ctx, id, j, other, name)
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		return nil, &refusal{status: http.StatusNotFound, field: "from", title: "there is no such checkpoint",
			fix: "scrimp checkpoints " + other + " lists them", err: err}
	case err != nil:
		return nil, &refusal{status: http.StatusBadGateway, field: "from", title: "the checkpoint was not copied",
			fix: "submit it again with the same key", err: err}
	}
	return &core.Source{Job: other, Checkpoint: m.Name, Step: m.Step}, nil
}

// copyCheckpoint returns the checkpoint as it is at the other job.
func (s *Server) copyCheckpoint(ctx context.Context, id string, j spec.Job, other, name string) (checkpoint.Manifest,
	error) {
	var none checkpoint.Manifest
	raw, _, err := s.control.Spec(ctx, other)
	if err != nil {
		return none, err
	}
	file, err := spec.Decode(raw)
	if err != nil {
		return none, err
	}
	b, from, err := s.storeOf(ctx, other, file)
	if err != nil {
		return none, err
	}
	defer func() { _ = b.Close() }()
	job, found := s.copyOf(other)
	if !found {
		return none, checkpoint.ErrNone
	}
	from = seeded(from, job)
	m, err := from.Find(ctx, name)
	if err != nil {
		return none, err
	}
	c, to, err := s.storeOf(ctx, id, j)
	if err != nil {
		return none, err
	}
	defer func() { _ = c.Close() }()
	writer, err := to.Claim(ctx, 0, id+".0")
	if err != nil {
		return none, err
	}
	_, err = writer.CopyFrom(ctx, from, m, checkpoint.Meta{Job: id, Attempt: id + ".0", Step: m.Step})
	return m, err
}

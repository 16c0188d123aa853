package kept

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"gocloud.dev/blob"

	"scrimp/internal/api"
	ours "scrimp/internal/blob"
	"scrimp/internal/checkpoint"
	"scrimp/internal/core"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/workdir"
	"scrimp/internal/spec"
)

// errNeeded is a checkpoint that its job goes on from.
var errNeeded = errors.New("the job goes on from it")

// latest names the newest checkpoint of a job.
const latest = "latest"

// storeOf is where the checkpoints of a job are. The caller closes the bucket.
func (k *Kept) storeOf(ctx context.Context, id string, j spec.Job) (*blob.Bucket, *checkpoint.Store, error) {
	b, err := ours.Open(ctx, cmp.Or(j.Checkpoint.Store, Address(k.Dir)))
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

// with calls do with the checkpoints of the job that is asked about, or answers what is wrong.
func (k *Kept) with(w http.ResponseWriter, r *http.Request, do func(*checkpoint.Store) error) (ok bool) {
	id := r.PathValue("id")
	raw, known, err := k.Control.Spec(r.Context(), id)
	if err == nil && !known {
		reply.UnknownJob(w, "", id)
		return false
	}
	var j spec.Job
	if err == nil {
		j, err = spec.Decode(raw)
	}
	if err == nil {
		var b *blob.Bucket
		var store *checkpoint.Store
		if b, store, err = k.storeOf(r.Context(), id, j); err == nil {
			job, _ := k.copyOf(id)
			err = do(seeded(store, job))
			_ = b.Close()
		}
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, errNeeded):
		reply.Problem(w, http.StatusConflict, "job "+id+" goes on from that checkpoint",
			"scrimp cancel it first, or resume it",
			nil)
	case errors.Is(err, checkpoint.ErrNone):
		reply.Problem(w, http.StatusNotFound, "there is no such checkpoint", "scrimp checkpoints "+id+" lists them", nil)
	default:
		reply.Problem(w, http.StatusBadGateway, "the store of checkpoints did not do it", "ask again", err)
	}
	return false
}

// Checkpoints lists a job's checkpoints, newest first.
func (k *Kept) Checkpoints(w http.ResponseWriter, r *http.Request) {
	list := []api.Checkpoint{}
	ok := k.with(w, r, func(store *checkpoint.Store) error {
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
		reply.JSON(w, list)
	}
}

// Checkpoint sends the files of a checkpoint, each checked against its hash.
func (k *Kept) Checkpoint(w http.ResponseWriter, r *http.Request) {
	dir, err := os.MkdirTemp(k.Dir, "checkpoint-")
	if err != nil {
		reply.Problem(w, http.StatusInsufficientStorage, "no room for the checkpoint", "make room on the server's disk", err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if !k.with(w, r, func(store *checkpoint.Store) error {
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
	if err := workdir.PackAll(w, dir); err != nil {
		panic(http.ErrAbortHandler) // a part that looked whole would be worse
	}
}

// RemoveCheckpoint removes a checkpoint of a job that holds no machine: while it does, its
// agent writes there, and removes old ones by itself.
func (k *Kept) RemoveCheckpoint(w http.ResponseWriter, r *http.Request) {
	id, name := r.PathValue("id"), r.PathValue("name")
	defer k.Turns.Alone("terms " + id)() // it is not resumed meanwhile
	j, found := k.copyOf(id)
	switch {
	case !found:
		reply.UnknownJob(w, "", id)
		return
	case j.Costs() || j.State() == core.Running || j.State() == core.Queued:
		reply.Problem(w, http.StatusConflict, fmt.Sprintf("job %s is %s", id, j.State()),
			"its agent removes old checkpoints as checkpoint.keep says; scrimp pause it, or wait until it is over", nil)
		return
	}
	if !k.with(w, r, func(store *checkpoint.Store) error {
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
	if err := k.Gate.Propose(r, id+"@"+name); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

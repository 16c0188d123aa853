package artifacts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"scrimp/client"
	ours "scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// errNeeded marks a checkpoint from which its job will continue.
var errNeeded = errors.New("the job continues from it")

// latest is the name for the newest checkpoint of a job.
const latest = "latest"

// errUnwritten means that the log did not accept an act.
var errUnwritten = errors.New("the log did not accept the event")

// errStore means that the server does not open the job's store.
var errStore = errors.New("the server does not open stores of this kind")

// storeOf opens the store of a job's checkpoints, for reading, or for writing if makes is set. The caller closes the
// bucket.
func (k *Kept) storeOf(ctx context.Context, id, user string, j spec.Job, makes bool) (*blob.Bucket, *checkpoint.Store,
	error) {
	if !k.Stores.OfJob(user, j.Checkpoint.Store) {
		return nil, nil, errStore
	}
	b, err := k.open(ctx, j.Checkpoint.Store, makes)
	if err != nil {
		return nil, nil, err
	}
	return b, checkpoint.Open(b, OwnKeys(id)), nil
}

// open opens a store that a job file names; "" is the server's own. Without makes, it does not create a missing
// folder.
func (k *Kept) open(ctx context.Context, store string, makes bool) (*blob.Bucket, error) {
	if store == "" {
		return ours.Open(ctx, Address(k.Dir))
	}
	if makes {
		return ours.Open(ctx, store)
	}
	b, err := ours.OpenExisting(ctx, store)
	if errors.Is(err, ours.ErrNone) { // nothing was saved yet
		return memblob.OpenBucket(nil), nil
	}
	return b, err
}

// withoutForeignSeeds returns the store. If the job did not start from another job's checkpoint, the store ignores
// checkpoints copied to it.
func withoutForeignSeeds(store *checkpoint.Store, j *core.Job) *checkpoint.Store {
	if j.Source() == nil {
		return store.Unseeded()
	}
	return store
}

// with calls do with the checkpoints of the requested job, or answers what is wrong.
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
		job, found := k.copyOf(id)
		if !found {
			reply.UnknownJob(w, "", id)
			return false
		}
		if b, store, err = k.storeOf(r.Context(), id, job.User(), j, false); err == nil {
			defer func() { _ = b.Close() }()
			err = do(withoutForeignSeeds(store, job))
		}
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, errStore):
		reply.FieldProblem(w, http.StatusForbidden, "checkpoint.store", "the server does not open the store of job "+id,
			"the machines of its jobs reach it; an admin allows it with scrimp serve --stores", nil)
	case errors.Is(err, errUnwritten):
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
	case errors.Is(err, errNeeded):
		reply.Problem(w, http.StatusConflict, "job "+id+" continues from that checkpoint",
			"scrimp cancel it first, or resume it",
			nil)
	case errors.Is(err, checkpoint.ErrNone) && k.answerRemoved(w, r, "checkpoint", id,
		"scrimp checkpoints "+id+" lists what is left", func(r client.Removed) *time.Time { return r.Checkpoints }):
	case errors.Is(err, checkpoint.ErrNone):
		reply.Problem(w, http.StatusNotFound, "there is no such checkpoint", "scrimp checkpoints "+id+" lists them", nil)
	default:
		reply.Problem(w, http.StatusBadGateway, "the store of checkpoints failed", "try again", k.plain(err))
	}
	return false
}

// looks bounds the concurrent lists: each holds a manifest of up to 64 MiB and its decoded form in memory.
var looks = make(chan struct{}, 4)

// Checkpoints lists a job's checkpoints, newest first.
func (k *Kept) Checkpoints(w http.ResponseWriter, r *http.Request) {
	list := []api.Checkpoint{}
	select {
	case looks <- struct{}{}:
		defer func() { <-looks }()
	case <-r.Context().Done():
		return
	}
	ok := k.with(w, r, func(store *checkpoint.Store) error {
		all, err := store.List(r.Context())
		newest := true
		for _, l := range all {
			if l.Fenced { // by a fenced attempt: no attempt will restore it
				continue
			}
			c := api.Checkpoint{Name: l.Name, Attempt: l.Attempt, Step: l.Step, Captured: l.Captured, Bytes: l.Bytes,
				Files: l.Count, Metrics: l.Metrics}
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

// Checkpoint sends the files of a checkpoint, and checks each part against its hash.
func (k *Kept) Checkpoint(w http.ResponseWriter, r *http.Request) {
	k.with(w, r, func(store *checkpoint.Store) error {
		name := r.PathValue("name")
		if name == latest {
			name = ""
		}
		m, err := store.Find(r.Context(), name)
		if err == nil {
			send(w, r, store, m)
		}
		return err
	})
}

// RemoveCheckpoint removes a checkpoint of a job that holds no machine. While a job holds one, its agent writes
// checkpoints and removes old ones itself.
func (k *Kept) RemoveCheckpoint(w http.ResponseWriter, r *http.Request) {
	id, name := r.PathValue("id"), r.PathValue("name")
	defer k.Turns.Alone("terms " + id)() // keeps the job from being resumed meanwhile
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
		all, err := store.List(r.Context())
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(l checkpoint.Listed) bool { return l.Name == name }) {
			return checkpoint.ErrNone
		}
		if err := k.Gate.Propose(r, id+"@"+name); err != nil { // recorded first, even if the client hangs up
			return fmt.Errorf("%w: %w", errUnwritten, err)
		}
		return store.Remove(context.WithoutCancel(r.Context()), name)
	}) {
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

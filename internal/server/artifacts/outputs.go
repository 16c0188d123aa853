package artifacts

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	gocloud "gocloud.dev/blob"

	"scrimp/client"
	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// List lists the outputs of a job by machine.
func (k *Kept) List(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if _, found := k.copyOf(id); !found {
		reply.UnknownJob(w, "", id)
		return
	}
	list := []api.Outputs{}
	err := k.outputs(r.Context(), id, func(store *checkpoint.Store) error {
		names, err := store.OutputNames(r.Context())
		for _, name := range names {
			node, ok := api.ParseOutputs(id, name)
			if !ok {
				continue
			}
			m, err := store.Outputs(r.Context(), name)
			if err != nil {
				return err
			}
			list = append(list, api.Outputs{Node: node, Kept: m.Published, Files: regular(m), Bytes: m.Bytes})
		}
		slices.SortFunc(list, func(a, b api.Outputs) int { return cmp.Compare(a.Node, b.Node) })
		return err
	})
	if err != nil {
		reply.Problem(w, http.StatusBadGateway, "cannot read the outputs", "try again", k.plain(err))
		return
	}
	if len(list) == 0 && k.answerRemoved(w, r, "kept output", id, rerunIt(id), outputsOf) {
		return
	}
	reply.JSON(w, list)
}

func rerunIt(id string) string { return "scrimp rerun " + id + " makes it again" }

func outputsOf(r client.Removed) *time.Time { return r.Outputs }

// regular counts the regular files of a manifest.
func regular(m format.Manifest) (n int) {
	for _, f := range m.Files {
		if f.Mode.IsRegular() {
			n++
		}
	}
	return n
}

// outputs calls do with the store of a job's outputs. It does not use the address that an agent reports, since the
// program could name another job's store or a host in the server's network.
func (k *Kept) outputs(ctx context.Context, id string, do func(*checkpoint.Store) error) error {
	bucket, err := k.bucket(ctx)
	if err != nil {
		return err
	}
	return do(checkpoint.Open(bucket, OwnKeys(id)))
}

// bucket returns the server's own store. It stays open, because a pipeline reads the outputs of thousands of jobs.
func (k *Kept) bucket(ctx context.Context) (b *gocloud.Bucket, err error) {
	k.opening.Lock()
	defer k.opening.Unlock()
	if k.opened == nil {
		k.opened, err = blob.Open(ctx, Address(k.Dir))
	}
	return k.opened, err
}

// Own calls do with the files of a job in the server's own store.
func (k *Kept) Own(ctx context.Context, id string, do func(*checkpoint.Store) error) error {
	return k.outputs(ctx, id, do)
}

// Outputs sends the outputs of a machine, and checks each part against its hash.
func (k *Kept) Outputs(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if _, found := k.copyOf(id); !found {
		reply.UnknownJob(w, "", id)
		return
	}
	node, err := 0, error(nil)
	if text := r.URL.Query().Get("node"); text != "" {
		if node, err = strconv.Atoi(text); err != nil || node < 0 {
			reply.FieldProblem(w, http.StatusNotFound, "node", fmt.Sprintf("the job has no node %.20q", text),
				"leave it out for node 0; GET /v1/jobs/"+id+"/kept lists those that have kept something", nil)
			return
		}
	}
	err = k.outputs(r.Context(), id, func(store *checkpoint.Store) error {
		m, err := store.Outputs(r.Context(), api.OutputsName(id, node))
		if err == nil {
			send(w, r, store, m)
		}
		return err
	})
	switch {
	case errors.Is(err, checkpoint.ErrNone) && k.answerRemoved(w, r, "kept output", id, rerunIt(id), outputsOf):
		return
	case errors.Is(err, checkpoint.ErrNone):
		reply.FieldProblem(w, http.StatusNotFound, "node", fmt.Sprintf("node %d of %s has kept no outputs", node, id),
			"name folders in outputs of its job file", nil)
	case err != nil:
		reply.Problem(w, http.StatusBadGateway, "cannot fetch the outputs", "try again", k.plain(err))
	}
}

// send streams the files of a manifest as a tar file in gzip, straight from the store: a slow reader needs no copy.
func send(w http.ResponseWriter, r *http.Request, store *checkpoint.Store, m format.Manifest) {
	w.Header().Set("Content-Type", "application/gzip")
	zip := gzip.NewWriter(w)
	if err := errors.Join(store.Tar(r.Context(), m, zip), zip.Close()); err != nil {
		panic(http.ErrAbortHandler) // abort, so that the client cannot take a truncated file for the whole
	}
}

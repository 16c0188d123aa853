package kept

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

	"scrimp/client"
	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// List lists the outputs that the machines of a job have kept.
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
		reply.Problem(w, http.StatusBadGateway, "the outputs were not looked at", "ask again", k.plain(err))
		return
	}
	if len(list) == 0 && k.gone(w, r, "kept output", id, rerunIt(id), outputsOf) {
		return
	}
	reply.JSON(w, list)
}

func rerunIt(id string) string { return "scrimp rerun " + id + " makes it again" }

func outputsOf(r client.Removed) *time.Time { return r.Outputs }

// regular is how many of a manifest's files are neither folders nor links.
func regular(m format.Manifest) (n int) {
	for _, f := range m.Files {
		if f.Mode.IsRegular() {
			n++
		}
	}
	return n
}

// outputs calls do with where the agents of a job keep its outputs. What an agent says of
// that is its program's word: it could name another job's, or a host of the server's network.
func (k *Kept) outputs(ctx context.Context, id string, do func(*checkpoint.Store) error) error {
	bucket, err := blob.Open(ctx, Address(k.Dir))
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }()
	return do(checkpoint.Open(bucket, OwnKeys(id)))
}

// Own calls do with what the server's own store has of a job.
func (k *Kept) Own(ctx context.Context, id string, do func(*checkpoint.Store) error) error {
	return k.outputs(ctx, id, do)
}

// Outputs sends what a machine of a job has kept, each part checked against its hash.
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
	case errors.Is(err, checkpoint.ErrNone) && k.gone(w, r, "kept output", id, rerunIt(id), outputsOf):
		return
	case errors.Is(err, checkpoint.ErrNone):
		reply.FieldProblem(w, http.StatusNotFound, "node", fmt.Sprintf("node %d of %s has kept no outputs", node, id),
			"name folders in outputs of its job file", nil)
	case err != nil:
		reply.Problem(w, http.StatusBadGateway, "the outputs were not fetched", "ask again", k.plain(err))
	}
}

// send sends the files of a manifest as a tar file in gzip. They come from where they are kept: nothing is
// copied for whoever reads slowly.
func send(w http.ResponseWriter, r *http.Request, store *checkpoint.Store, m format.Manifest) {
	w.Header().Set("Content-Type", "application/gzip")
	zip := gzip.NewWriter(w)
	if err := errors.Join(store.Tar(r.Context(), m, zip), zip.Close()); err != nil {
		panic(http.ErrAbortHandler) // a part that looked whole would be worse
	}
}

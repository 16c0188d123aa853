package artifacts

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"scrimp/client"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// mostContents bounds the files of an answer, and leastContent is the size of the smallest if the request names none.
const (
	mostContents = 10_000
	leastContent = 1 << 20
)

// gathered collects the files of a job. Files that share their stored parts count once.
type gathered struct {
	client.Contents
	least int64
	seen  map[string]bool
}

func (g *gathered) add(kind, name, store string, m format.Manifest) {
	for _, f := range m.Files {
		if !f.Mode.IsRegular() || f.Size < g.least || len(f.Parts) == 0 {
			continue
		}
		digest := f.Content()
		key := fmt.Sprintf("%q %s %s", store, f.Parts[0].Home, digest)
		if g.seen[key] {
			continue
		}
		g.seen[key] = true
		g.Files = append(g.Files, client.Content{Kind: kind, Name: name, Path: f.Path, Store: store, Bytes: f.Size,
			Digest: digest})
	}
}

// Contents lists the files that a job keeps, with the digests of their contents. It reads manifests only.
func (k *Kept) Contents(w http.ResponseWriter, r *http.Request) {
	g := gathered{least: leastContent, seen: map[string]bool{}}
	g.Files = []client.Content{}
	if text := r.URL.Query().Get("least"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			reply.FieldProblem(w, http.StatusBadRequest, "least", fmt.Sprintf("%.40q is not a number of bytes from 1", text),
				"write a whole number, such as 1048576", nil)
			return
		}
		g.least = n
	}
	select {
	case looks <- struct{}{}:
		defer func() { <-looks }()
	case <-r.Context().Done():
		return
	}
	id := r.PathValue("id")
	raw, _, err := k.Control.Spec(r.Context(), id)
	var j spec.Job
	if err == nil {
		j, err = spec.Decode(raw)
	}
	if err != nil {
		reply.UnknownJob(w, "", id)
		return
	}
	err = k.outputs(r.Context(), id, func(store *checkpoint.Store) error {
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
			g.add("output", strconv.Itoa(node), "", m)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		reply.Problem(w, http.StatusBadGateway, "cannot read the outputs", "try again", k.plain(err))
		return
	}
	if !k.with(w, r, func(store *checkpoint.Store) error {
		return store.Each(r.Context(), func(m format.Manifest) { g.add("checkpoint", m.Name, plainAddress(j), m) })
	}) {
		return
	}
	slices.SortStableFunc(g.Files, func(a, b client.Content) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if n := len(g.Files); n > mostContents {
		g.Files, g.Left = g.Files[:mostContents], int64(n-mostContents)
	}
	reply.JSON(w, g.Contents)
}

// plainAddress returns the address of a job's checkpoint store without its parameters, which may hold credentials.
func plainAddress(j spec.Job) string {
	u, err := url.Parse(j.Checkpoint.Store)
	if err != nil {
		return ""
	}
	u.RawQuery, u.User = "", nil
	return u.String()
}

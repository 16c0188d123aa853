// Package kept shows what the agents of jobs have kept: checkpoints and outputs.
package kept

import (
	"net/http"
	"os"
	"path/filepath"

	"scrimp/internal/blob"
	"scrimp/internal/checkpoint"
	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/turn"
	"scrimp/internal/server/workdir"
)

// OwnKeys is what all keys of a job begin with, in the server's store as in any other.
func OwnKeys(job string) string { return "jobs/" + job + "/" }

// Kept is what jobs have kept in a data folder, or where their files name another place.
type Kept struct {
	Gate    *auth.Gate
	Control *control.Control
	Turns   *turn.Turns
	Dir     string // the data folder
}

// copyOf is the job as it is now.
func (k *Kept) copyOf(id string) (j *core.Job, found bool) {
	found = k.Control.Job(id, func(_ *core.Machine, job *core.Job) { j = job.Copy() })
	return j, found
}

// Outputs sends what a job has kept, each file checked against its hash.
func (k *Kept) Outputs(w http.ResponseWriter, r *http.Request) {
	id, kept := r.PathValue("id"), ""
	if !k.Control.Job(id, func(_ *core.Machine, j *core.Job) { kept = j.Outputs() }) {
		reply.UnknownJob(w, "", id)
		return
	}
	if kept == "" {
		reply.Problem(w, http.StatusNotFound, id+" has kept no outputs", "name folders in outputs of its job file", nil)
		return
	}
	dir, err := os.MkdirTemp(k.Dir, "outputs-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		// what the agent says is its program's word: it could name another job's, or a host of the server's network
		err = fetch(r, Address(k.Dir), id, dir)
	}
	if err != nil {
		reply.Problem(w, http.StatusBadGateway, "the outputs were not fetched", "ask again", err)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	if err := workdir.PackAll(w, dir); err != nil {
		panic(http.ErrAbortHandler) // a part that looked whole would be worse
	}
}

// Address is that of what agents keep in a data folder: outputs and, where the
// job file names no other place, checkpoints.
func Address(data string) string { return "file://" + filepath.ToSlash(filepath.Join(data, "blobs")) }

func fetch(r *http.Request, url, job, dir string) error {
	bucket, err := blob.Open(r.Context(), url)
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }()
	_, err = checkpoint.Open(bucket, OwnKeys(job)).Fetch(r.Context(), job, dir)
	return err
}

// Package kept shows what the agents of jobs have kept: checkpoints and outputs.
package kept

import (
	"errors"
	"path/filepath"
	"strings"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/turn"
)

// OwnKeys is what all keys of a job begin with, in the server's store as in any other.
func OwnKeys(job string) string { return "jobs/" + job + "/" }

// Kept is what jobs have kept in a data folder, or where their files name another place.
type Kept struct {
	Gate    *auth.Gate
	Control *control.Control
	Turns   *turn.Turns
	Meta    Meta
	Dir     string // the data folder
	Stores  Stores // that job files may name
}

// Plain is an error as users see it: where the data folder lies is not their business.
func (k *Kept) Plain(err error) error { return k.plain(err) }

// plain is an error as users see it: where the data folder lies is not their business.
func (k *Kept) plain(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), k.Dir, "the data folder"))
}

// copyOf is the job as it is now.
func (k *Kept) copyOf(id string) (j *core.Job, found bool) {
	found = k.Control.Job(id, func(_ *core.Machine, job *core.Job) { j = job.Copy() })
	return j, found
}

// Address is that of what agents keep in a data folder: outputs and, where the
// job file names no other place, checkpoints.
func Address(data string) string { return "file://" + filepath.ToSlash(filepath.Join(data, "blobs")) }

// Package artifacts shows the files that the agents of jobs have stored: checkpoints and outputs.
package artifacts

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/keymutex"
)

// OwnKeys returns the prefix of all keys of a job, in the server's store as in any other.
func OwnKeys(job string) string { return "jobs/" + job + "/" }

// Kept finds the files of jobs, in the data folder or where their job files say.
type Kept struct {
	Gate    *auth.Gate
	Control *control.Control
	Turns   *keymutex.Turns
	Meta    Meta
	Dir     string // the data folder
	Stores  Stores // stores that job files may name

	opening sync.Mutex
	opened  *gocloud.Bucket // the server's own store
}

// Plain returns err without the path of the data folder, which users need not know.
func (k *Kept) Plain(err error) error { return k.plain(err) }

// plain returns err without the path of the data folder, which users need not know.
func (k *Kept) plain(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), k.Dir, "the data folder"))
}

// copyOf returns a copy of the job in its present state.
func (k *Kept) copyOf(id string) (j *core.Job, found bool) {
	found = k.Control.Job(id, func(_ *core.Machine, job *core.Job) { j = job.Copy() })
	return j, found
}

// Address returns the URL of the store in a data folder. It holds outputs, and the checkpoints of jobs whose files
// name no other store.
func Address(data string) string { return "file://" + filepath.ToSlash(filepath.Join(data, "blobs")) }

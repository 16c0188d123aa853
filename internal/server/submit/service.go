// Package submit accepts jobs: it reads their files, assigns them to a team, stores their work folders and secrets,
// and passes each to the core once.
package submit

import (
	"context"
	"net/http"

	"scrimp/internal/control"
	"scrimp/internal/job/spec"
	"scrimp/internal/market/catalog"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/groups"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/keymutex"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/submit/naming"
	"scrimp/internal/server/submit/request"
	"scrimp/internal/server/workdir"
	"scrimp/internal/store"
)

// Log finds earlier submissions.
type Log interface {
	Seen(ctx context.Context, tenant string, keys ...string) (map[string]uint64, error)
	Records(ctx context.Context, after uint64, limit int) ([]store.Record, error)
}

// Service accepts submissions.
type Service struct {
	Gate    *auth.Gate
	Control *control.Control
	Log     Log
	LogHere bool   // the log is on the data folder's disk
	Dir     string // the data folder
	Room    disk.Room
	Turns   *keymutex.Turns
	Vault   secret.Vault
	Reader  request.Reader
	Names   *naming.Names
	Uploads *workdir.Uploads
	Kept    *artifacts.Kept
	Jobs    *jobs.Service
	Groups  *groups.Service
	Charges func() catalog.Catalog // the server's own prices of transferring data
	// Quota reserves space for the work folder of a team's job, or returns why there is none.
	Quota   func(ctx context.Context, team, job string) error
	Settled func(ctx context.Context) *reply.Refusal // why the core lacks the limits in force; nil: it has them
	Forget  func(job string)                         // deletes the secrets of a job
	// Foresee returns the planned cost of a job in dollars: 10 %, median and 90 %; nil: unknown.
	Foresee func(r *http.Request, j spec.Job) *[3]float64
	// Measured fills in from earlier runs how much of the work more processors or accelerators make faster.
	Measured func(r *http.Request, j spec.Job) (spec.Job, error)
}

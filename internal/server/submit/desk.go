// Package submit takes jobs in: it reads their files, places them with a team, keeps their work folders and
// secrets, and hands them to the core, each once.
package submit

import (
	"context"
	"sync"

	"scrimp/internal/control"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/groups"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/kept"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/turn"
	"scrimp/internal/server/webhook"
	"scrimp/internal/server/workdir"
	"scrimp/internal/store"
)

// Log is asked for submissions of before.
type Log interface {
	Seen(ctx context.Context, tenant string, keys ...string) (map[string]uint64, error)
	Records(ctx context.Context, after uint64, limit int) ([]store.Record, error)
}

// Desk is where jobs are submitted.
type Desk struct {
	Gate    *auth.Gate
	Control *control.Control
	Log     Log
	LogHere bool   // the log lies on the data folder's disk
	Dir     string // the data folder
	Room    disk.Room
	Turns   *turn.Turns
	Vault   secret.Vault
	Hooks   webhook.Sender
	Uploads *workdir.Uploads
	Kept    *kept.Kept
	Jobs    *jobs.Desk
	Groups  *groups.Desk
	// Quota takes room for the work folder of a job of a team, or says why there is none.
	Quota   func(ctx context.Context, team, job string) error
	Settled func(ctx context.Context) *reply.Refusal // why the limits are not those in force, nil: they are
	Forget  func(job string)                         // drops the secrets of a job

	naming  sync.Mutex      // guards what follows
	named   map[string]bool // names of submissions in work
	numbers map[string]int  // by name of a job: the lowest number that may be free
}

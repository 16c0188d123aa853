// Package agents answers the agents on machines: it takes their reports, output and blobs, and gives
// them tasks.
package agents

import (
	"context"
	"log/slog"
	"sync"

	"scrimp/internal/control"
	"scrimp/internal/engine"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/workblob"
	"scrimp/internal/server/workdir"
	"scrimp/internal/wire/api"
)

// Output is what programs have printed.
type Output interface {
	AppendLog(ctx context.Context, attempt string, offset int64, chunk []byte) (end int64, err error)
	LogEnd(ctx context.Context, attempt string) (int64, error)
}

// How many messages an agent may report: each can be an event. It keeps those of an hour without a server,
// mostly of checkpoints.
const (
	messagesASecond = 20
	messagesAtOnce  = 2000
)

// NewReportPace is the pace of agents' messages.
func NewReportPace() *auth.Pace { return auth.NewBurst(messagesASecond, messagesAtOnce) }

// Desk answers agents.
type Desk struct {
	Gate     *auth.Gate
	Control  *control.Control
	Log      Output
	Dir      string // the data folder
	Room     disk.Room
	Vault    secret.Vault
	Build    string
	Exe      string // the program that machines start; "" is this one
	LogLimit int64  // bytes of output kept of one rank; 0: 1 GiB
	Errors   *slog.Logger
	Printed  func(bytes int)
	Here     func(engine string) bool // whether its machines share the submitter's files
	Folders  *workdir.Store           // work folders
	Blobs    *workblob.Blobs          // and those that are in buckets
	// Quota takes room for so many bytes of a job, or says why there is none.
	Quota   func(ctx context.Context, job string, n int64) error
	Moves   *auth.Streams // contents on their way to agents and from them
	Pace    *auth.Pace    // in bytes of output, of a rank
	AllPace *auth.Pace    // and of all
	Reports *auth.Pace    // in messages, of a rank
	// Lender is who lends credentials for the store of a job, and the prefix in its bucket that is the job's own; nil:
	// nobody does.
	Lender func(address, job string) (l engine.Lender, prefix string)
	// Measured keeps what an agent has measured of a job, and returns up to when it need not send it again.
	Measured func(ctx context.Context, job string, report api.Report) int64

	blobs    blobs
	sessions sessions
	waits    auth.Streams // for folders that are on their way to buckets, of a rank

	mu      sync.Mutex
	ports   map[string]int // at which the gangs that run meet, by attempt
	execs   map[string]*execution
	skipped map[string]int64 // by name of the output: what of it is not kept, since there is too much of it
}

// Package agents answers the agents on machines: it takes their reports, output and blobs, and assigns tasks to
// them.
package agents

import (
	"context"
	"log/slog"
	"sync"

	"scrimp/internal/control"
	"scrimp/internal/control/recent"
	"scrimp/internal/engine"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/workblob"
	"scrimp/internal/server/workdir"
	"scrimp/internal/wire/api"
)

// Output stores the output of programs.
type Output interface {
	AppendLog(ctx context.Context, attempt string, offset int64, chunk []byte) (end int64, err error)
	LogEnd(ctx context.Context, attempt string) (int64, error)
}

// Limits on the messages of an agent, since each can become an event. An agent that cannot reach the server keeps an
// hour of messages, mostly about checkpoints, and sends them at once.
const (
	messagesASecond = 20
	messagesAtOnce  = 2000
)

// NewReportPace returns the rate limiter for messages of agents.
func NewReportPace() *auth.Pace { return auth.NewBurst(messagesASecond, messagesAtOnce) }

// Service answers agents.
type Service struct {
	Gate     *auth.Gate
	Control  *control.Control
	Log      Output
	Dir      string // the data folder
	Room     disk.Room
	Vault    secret.Vault
	Files    *recent.Cache[File, spec.Job] // those that ranks were assigned from
	Build    string
	Exe      string // the program that machines start; "" is this executable
	LogLimit int64  // bytes of output of one rank; 0: 1 GiB
	Errors   *slog.Logger
	Printed  func(bytes int)
	Here     func(engine string) bool // reports whether the engine's machines share the submitter's files
	Folders  *workdir.Store           // work folders
	Blobs    *workblob.Blobs          // work folders in buckets
	// Quota reserves n bytes of disk for a job, or returns an error if there is no room.
	Quota   func(ctx context.Context, job string, n int64) error
	Moves   *auth.Streams // transfers to and from agents
	Pace    *auth.Pace    // bytes of output of a rank
	AllPace *auth.Pace    // bytes of output of all ranks
	Reports *auth.Pace    // messages of a rank
	// Lender returns the engine that lends credentials for a job's store, and the job's own prefix in the bucket. It
	// returns nil if no engine does.
	Lender func(address, job string) (l engine.Lender, prefix string)
	// Measured stores an agent's telemetry of a job, and returns the time up to which the agent need not send it
	// again.
	Measured func(ctx context.Context, job string, report api.Report) int64

	blobs    blobs
	sessions sessions
	waits    auth.Streams // requests of a rank that wait for a folder to reach its bucket

	mu      sync.Mutex
	ports   map[string]int // the rendezvous ports of running gangs, by attempt
	execs   map[string]*execution
	skipped map[string]int64 // bytes not kept because the output was too large, by name of the output
}

// Package agents answers the agents on machines: it takes their reports, output and blobs, and gives
// them tasks.
package agents

import (
	"context"
	"log/slog"
	"sync"

	"scrimp/internal/control"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/secret"
)

// Output is what programs have printed.
type Output interface {
	AppendLog(ctx context.Context, attempt string, offset int64, chunk []byte) (end int64, err error)
	LogEnd(ctx context.Context, attempt string) (int64, error)
}

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
	LogLimit int64  // bytes of output kept of one attempt; 0: 1 GiB
	Errors   *slog.Logger
	Printed  func(bytes int)
	Moves    *auth.Streams // contents on their way to agents and from them
	Pace     *auth.Pace    // in bytes of output, of an attempt
	AllPace  *auth.Pace    // and of all attempts

	blobs blobs

	mu      sync.Mutex
	execs   map[string]*execution
	skipped map[string]int64 // by attempt: output that is not kept, since there is too much of it
}

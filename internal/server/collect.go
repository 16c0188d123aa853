package server

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"scrimp/internal/lib/wait"
)

const (
	// smallHeap is the size of live objects up to which the garbage collector runs half as often: with 1,000 running jobs
	// the server has a tenth of it. A large server needs the memory more than the time.
	smallHeap    = 256 << 20
	collectEvery = time.Minute
)

// collect sets how often the garbage collector runs, by the size of the heap, unless GOGC says it.
func (s *Server) collect(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for ctx.Err() == nil {
		metrics.Read(live)
		debug.SetGCPercent(growth(live[0].Value.Uint64()))
		_ = wait.For(ctx, collectEvery)
	}
}

// growth returns by how much a heap may grow until it is collected again, in percent.
func growth(live uint64) int {
	if live < smallHeap {
		return 200
	}
	return 100
}

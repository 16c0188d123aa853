package control

import (
	"context"
	"runtime"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
)

// maxBuilds bounds the tables built at once.
const maxBuilds = 2

// builders leaves one processor to the steps if there are several.
func builders() int { return max(1, min(maxBuilds, runtime.GOMAXPROCS(0)-1)) }

// build builds a table that decisions need while steps continue, and reports that it is ready.
func (c *Control) build(ctx context.Context, a core.BuildTable) {
	select {
	case c.builds <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-c.builds }()
	runtime.Gosched()
	t := plan.Build(a.Request)
	c.adopt(t)
	ready := core.TableReady{Table: t.Key(), Version: plan.TableVersion, Hash: t.Hash()}
	_ = c.Propose(ctx, c.event(c.Now(), ready)) // otherwise the jobs are decided without it and request it again
}

func (c *Control) adopt(t plan.Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Adopt(t)
}

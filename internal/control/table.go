package control

import (
	"context"
	"runtime"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
)

// mostBuilds is how many tables are built at once.
const mostBuilds = 2

// builders leaves a processor to the steps, where there are several.
func builders() int { return max(1, min(mostBuilds, runtime.GOMAXPROCS(0)-1)) }

// build builds a table that decisions lack, beside the steps, and tells that it is there.
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
	_ = c.Propose(ctx, c.event(c.Now(), ready)) // where it is not written the jobs are decided without it, and ask again
}

func (c *Control) adopt(t plan.Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Adopt(t)
}

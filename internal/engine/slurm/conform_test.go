package slurm

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"scrimp/internal/await"
	"scrimp/internal/engine"
	"scrimp/internal/engine/enginetest"
	"scrimp/internal/wait"
)

// again is a driver that can be replaced by another one, as when its server is killed and started again.
type again struct {
	mu sync.Mutex
	*Driver
}

func (a *again) now() *Driver {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Driver
}

func (a *again) Launch(ctx context.Context, q engine.Request) ([]engine.Instance, error) {
	if q.Env == nil {
		q.Env = map[string]string{"SCRIMP_SERVER": a.now().server, "SCRIMP_TOKEN": "bootstrap.secret", "SCRIMP_TASK_USER": "same"}
	}
	return a.now().Launch(ctx, q)
}
func (a *again) Cancel(ctx context.Context, key string) error        { return a.now().Cancel(ctx, key) }
func (a *again) Terminate(ctx context.Context, id string) error      { return a.now().Terminate(ctx, id) }
func (a *again) List(ctx context.Context) ([]engine.Instance, error) { return a.now().List(ctx) }

// rigOf is a cluster of its own with a driver, whose spot machines a more urgent job takes as soon as they run.
func rigOf(t testing.TB) enginetest.Rig { return newCluster(t, "GRACE=2").rig(t) }

func (c *realCluster) rig(t testing.TB) enginetest.Rig {
	d := &again{Driver: c.driver(t)}
	filler := c.fill()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for wait.For(ctx, 100*time.Millisecond) == nil {
			if out, err := c.try("squeue", "-h", "-p", "spot", "-t", "RUNNING", "-o", "%i"); err == nil && out != "" {
				_, _ = c.try("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 1000")
				return
			}
		}
	}()
	return enginetest.Rig{
		Driver: d, Granted: "hpc/ondemand/a100x4-8c-3g/on-demand", Empty: "hpc/closed/a100x4-8c-3g/on-demand",
		Fails: "hpc/spot/a100x4-8c-3g/spot", Queued: "hpc/busy/4c-1g/on-demand",
		Grant:       func(testing.TB, string) { _, _ = c.try("scancel", filler) },
		Consistency: time.Second, Limit: await.Limit,
		Restart: func(t testing.TB) { // the controller and the server die at once
			c.saved()
			c.kill("slurmctld")
			c.begin("slurmctld", "-f", c.conf())
			c.answers(t)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.Driver = c.driver(t)
		},
		Foreign: func(testing.TB) string {
			return c.do("sbatch", "--parsable", "--partition=ondemand", "--output=/dev/null", "--wrap=sleep 1000")
		},
	}
}

// The driver is held to the contract by a real cluster, and its page says by which cases.
func TestDriverConforms(t *testing.T) {
	t.Parallel()
	enginetest.Page(t, filepath.Join("..", "..", "..", "docs", "engines", "slurm.md"), enginetest.Run(t, rigOf))
}

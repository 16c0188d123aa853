package slurm

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/lane"
)

// again is a driver that can be replaced, as when its server is killed and started again. It makes keys unique to the
// test: Slurm runs jobs of one name, and so of one key, one after the other.
type again struct {
	mu sync.Mutex
	*Driver
	// first holds a hook per offer that runs before its first launch.
	first map[market.OfferID]func()
}

func (a *again) now() *Driver {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Driver
}

func (a *again) key(key string) string {
	if key == "" {
		return ""
	}
	return a.store.Engine + "." + key
}

// plain restores the test's own keys in machines.
func (a *again) plain(list []engine.Instance, err error) ([]engine.Instance, error) {
	for n := range list {
		list[n].Key = strings.TrimPrefix(list[n].Key, a.store.Engine+".")
	}
	return list, err
}

func (a *again) Launch(ctx context.Context, q engine.Request) ([]engine.Instance, error) {
	a.mu.Lock()
	before := a.first[q.Offer]
	delete(a.first, q.Offer)
	a.mu.Unlock()
	if before != nil {
		before()
	}
	if q.Env == nil {
		q.Env = map[string]string{"SCRIMP_SERVER": a.now().server, "SCRIMP_TOKEN": "bootstrap.secret", "SCRIMP_TASK_USER": "same"}
	}
	q.Key = a.key(q.Key)
	return a.plain(a.now().Launch(ctx, q))
}
func (a *again) Cancel(ctx context.Context, key string) error   { return a.now().Cancel(ctx, a.key(key)) }
func (a *again) Terminate(ctx context.Context, id string) error { return a.now().Terminate(ctx, id) }
func (a *again) List(ctx context.Context) ([]engine.Instance, error) {
	return a.plain(a.now().List(ctx))
}

// rig is the cluster with a driver. A more urgent job preempts its spot machines as soon as they run.
func (c *realCluster) rig(t testing.TB) enginetest.Rig {
	d := &again{Driver: c.driver(t), first: map[market.OfferID]func(){}}
	filler := ""
	spot, busy := c.offer("spot/a100x4-8c-3g/spot"), c.offer("busy/4c-1g/on-demand")
	d.first[busy] = func() { filler = c.fill() }
	ctx, stop := context.WithCancel(context.Background())
	var urgent sync.WaitGroup
	t.Cleanup(func() { stop(); urgent.Wait() })
	d.first[spot] = func() { urgent.Go(func() { c.preempt(ctx) }) }
	return enginetest.Rig{
		Driver: d, Granted: c.offer("ondemand/a100x4-8c-3g/on-demand"), Empty: c.offer("closed/a100x4-8c-3g/on-demand"),
		Fails: spot, Queued: busy,
		Grant:       func(testing.TB, string) { _, _ = c.try("scancel", filler) },
		Consistency: time.Second,
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

// preempt submits a job that takes the spot nodes once another job runs there.
func (c *realCluster) preempt(ctx context.Context) {
	for wait.For(ctx, 100*time.Millisecond) == nil {
		if out, err := c.try("squeue", "-h", "-p", "spot", "-t", "RUNNING", "-o", "%i"); err == nil && out != "" {
			_, _ = c.try("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 1000")
			return
		}
	}
}

// The driver passes the contract's tests on a real cluster, and its documentation page lists the cases.
func TestDriver_Conforms(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	results := enginetest.Run(t, func(t testing.TB) enginetest.Rig { return newCluster(t, "GRACE=2").rig(t) })
	enginetest.Page(t, filepath.Join("..", "..", "..", "docs", "engines", "slurm.md"), results)
}

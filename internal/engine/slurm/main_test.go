package slurm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/rest"
	"scrimp/internal/engine/slurm/setting"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/test/slurmtest"
)

func TestMain(m *testing.M) {
	status := m.Run()
	idle.stop()
	os.Exit(status)
}

// realCluster is a real cluster on loan to one test, with the test's own folder and engine name.
type realCluster struct {
	testing.TB
	cluster *slurmtest.Cluster
	dir     string        // the test's own
	name    string        // of the test's engine, unique so that no other test lists its jobs
	rest    *rest.Setting // nil: uses the commands
	hurt    bool          // one of its daemons was killed, so it is not reused
}

var names atomic.Int64

// newCluster returns a cluster with these settings of test/slurm-up.sh for the test.
func newCluster(t testing.TB, env ...string) *realCluster {
	t.Helper()
	overREST := slices.Contains(env, "REST=1")
	if overREST {
		needs(t, "/usr/sbin/slurmrestd", "slurmrestd")
	}
	dir, err := os.MkdirTemp("", "sl") // short, because the path of a socket is
	must.Do(t, err)
	c := &realCluster{TB: t, cluster: idle.take(t, env), dir: dir, name: fmt.Sprint("hpc", names.Add(1))}
	if overREST {
		c.rest = &rest.Setting{URL: "unix://" + filepath.Join(c.cluster.Dir, "rest.sock")}
	}
	t.Cleanup(func() {
		if c.tell(); t.Failed() || c.hurt || !c.emptied() {
			c.cluster.Stop(t)
		} else {
			idle.put(c.cluster, env)
		}
		_ = os.RemoveAll(dir)
	})
	return c
}

// idle holds the clusters of this package that no test is using.
var idle pool

type pool struct {
	mu   sync.Mutex
	list map[string][]*slurmtest.Cluster // by settings
}

// take returns a cluster with these settings, and starts one if none is idle.
func (p *pool) take(t testing.TB, env []string) *slurmtest.Cluster {
	t.Helper()
	settings := strings.Join(env, " ")
	p.mu.Lock()
	list := p.list[settings]
	if len(list) == 0 {
		p.mu.Unlock()
		return slurmtest.New(t, env...)
	}
	defer p.mu.Unlock()
	p.list[settings] = list[1:]
	return list[0]
}

func (p *pool) put(c *slurmtest.Cluster, env []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list == nil {
		p.list = map[string][]*slurmtest.Cluster{}
	}
	settings := strings.Join(env, " ")
	p.list[settings] = append(p.list[settings], c)
}

func (p *pool) stop() {
	for _, list := range p.list {
		for _, c := range list {
			c.End()
		}
	}
}

// emptied ends the jobs that a test has left, and reports whether the cluster is clean. Slurm may leave a job that
// was ended at its start COMPLETING for minutes; emptied does not wait for such a cluster.
func (c *realCluster) emptied() bool {
	if _, err := c.try("scancel", "--user="+strconv.Itoa(os.Getuid())); err != nil {
		return false
	}
	for range 30 {
		queue, err := c.try("squeue", "--noheader")
		nodes, err2 := c.try("sinfo", "--noheader", "--Node", "--format=%T")
		states := strings.Fields(nodes)
		if err == nil && err2 == nil && queue == "" && len(states) > 0 &&
			!slices.ContainsFunc(states, func(s string) bool { return s != "idle" }) {
			return true
		}
		_ = wait.For(context.Background(), 50*time.Millisecond)
	}
	return false
}

// tell logs the output of the allocations of a failed test.
func (c *realCluster) tell() {
	if !c.Failed() {
		return
	}
	consoles, _ := filepath.Glob(filepath.Join(c.dir, "*", "engines", "*", "requests", "*", "*"))
	for _, path := range consoles {
		if text, _ := os.ReadFile(path); filepath.Base(path) != "run.sh" {
			c.Logf("%s:\n%s", path, text)
		}
	}
}

func (c *realCluster) conf() string { return c.cluster.Conf() }

// do runs a Slurm command; try runs one that may fail.
func (c *realCluster) do(name string, args ...string) string {
	c.Helper()
	return c.cluster.Do(c, name, args...)
}

func (c *realCluster) try(name string, args ...string) (string, error) {
	return c.cluster.Try(name, args...)
}

// offer returns the id of an offer of the test's engine: ondemand/a100x4-8c-3g/on-demand.
func (c *realCluster) offer(rest string) market.OfferID { return market.OfferID(c.name + "/" + rest) }

// with returns an engine's settings for the cluster.
func (c *realCluster) with() setting.With {
	conf := c.conf()
	if c.rest != nil {
		conf = ""
	}
	return setting.With{Conf: conf, REST: c.rest, Scratch: filepath.Join(c.dir, "scratch"), Partitions: []setting.Partition{
		{Name: "ondemand", Rate: "3.60"}, {Name: "spot", Rate: "1.20"}, {Name: "busy", Rate: "0.90"}, {Name: "closed", Rate: "0.36"},
		{Name: "short", Rate: "3.60"},
	}}
}

// idler is an agent that waits to be ended.
const idler = "#!/bin/bash\ntrap 'kill $!; exit 0' TERM\nwhile :; do sleep 1000 & wait $!; done\n"

// driver returns a driver whose machines run idler.
func (c *realCluster) driver(t testing.TB) *Driver {
	t.Helper()
	exe := filepath.Join(c.dir, "idler")
	must.Do(t, os.WriteFile(exe, []byte(idler), 0o700))
	s := engine.Setting{Name: c.name, Kind: Kind, With: engine.WithOf(c.with())}
	e, err := Open(t.Context(), s, engine.Host{Dir: filepath.Join(c.dir, "data"), Socket: "unix://" + filepath.Join(c.dir, "server.sock"),
		Exe: exe})
	must.Do(t, err)
	d, ok := e.Driver.(*Driver)
	if !ok {
		t.Fatal("another driver")
	}
	return d
}

// fill occupies the node of the busy partition, and returns the job on it.
func (c *realCluster) fill() string {
	c.Helper()
	id := c.do("sbatch", "--parsable", "--partition=busy", "--exclusive", "--output=/dev/null", "--wrap=sleep 1000")
	eventually.True(c, "the node is taken", func() bool { return c.do("squeue", "-h", "-j", id, "-o", "%T") == "RUNNING" })
	return id
}

// pid returns the process of one of the cluster's daemons, and marks the cluster as damaged.
func (c *realCluster) pid(name string) int {
	c.Helper()
	c.hurt = true
	text, err := os.ReadFile(filepath.Join(c.cluster.Dir, "pids", name+".pid"))
	pid, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || err2 != nil {
		c.Fatalf("the process of %s: %q, %v, %v", name, text, err, err2)
	}
	return pid
}

func (c *realCluster) signal(name string, sig syscall.Signal) {
	c.Helper()
	if err := syscall.Kill(c.pid(name), sig); err != nil {
		c.Fatalf("signal %s: %v", name, err)
	}
}

// kill kills one of the cluster's daemons, and waits for its end.
func (c *realCluster) kill(name string) {
	c.Helper()
	pid := c.pid(name)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	eventually.True(c, name+" is gone", func() bool { return syscall.Kill(pid, 0) != nil })
}

// begin starts a daemon of the cluster.
func (c *realCluster) begin(name string, args ...string) {
	c.Helper()
	cmd := exec.Command(name, args...) // it detaches from its terminal
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf(), "PATH="+os.Getenv("PATH")+":/usr/sbin")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// saved waits until the controller has written its current state: a killed controller loses what it accepted in the
// last five seconds.
func (c *realCluster) saved() {
	c.Helper()
	eventually.True(c, "the controller saves its jobs", c.settled)
}

// settled reports whether every job in squeue is older than the state on disk.
func (c *realCluster) settled() bool {
	st, err := os.Stat(filepath.Join(c.cluster.Dir, "state", "job_state"))
	if err != nil {
		return false
	}
	out, err := c.try("squeue", "-h", "-t", "all", "-o", "%V %S %e")
	for f := range strings.FieldsSeq(out) {
		if n, err := strconv.ParseInt(f, 10, 64); err == nil && n <= time.Now().Unix() && !time.Unix(n, 0).Before(st.ModTime().Add(-time.Second)) {
			return false
		}
	}
	return err == nil
}

// answers waits until the controller and all nodes answer.
func (c *realCluster) answers(t testing.TB) {
	t.Helper()
	eventually.True(t, "all nodes answer", func() bool {
		out, err := c.try("sinfo", "-h", "-N", "-o", "%T")
		return err == nil && !strings.ContainsAny(out, "*") && !strings.Contains(out, "unknown")
	})
}

package slurm

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/await"
	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/slurmtest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "5"); err != nil { // they wait for clusters, most of the time
		panic(err)
	}
	os.Exit(m.Run())
}

// slurm is a real cluster of its own: see test/slurm-up.sh.
type realCluster struct {
	testing.TB
	dir  string
	port int
	rest *REST // nil: by its commands
}

// newCluster starts one, with what the script reads of the environment.
func newCluster(t testing.TB, env ...string) *realCluster {
	t.Helper()
	rest := slices.Contains(env, "REST=1")
	if rest {
		needs(t, "/usr/sbin/slurmrestd", "slurmrestd")
	}
	started := slurmtest.Start(t, env...)
	c := &realCluster{TB: t, dir: started.Dir, port: started.Port}
	if rest {
		c.rest = &REST{URL: "unix://" + filepath.Join(c.dir, "rest.sock")}
	}
	return c
}

func (c *realCluster) conf() string { return filepath.Join(c.dir, "etc", "slurm.conf") }

// do runs a command of Slurm.
func (c *realCluster) do(name string, args ...string) string {
	c.Helper()
	out, err := c.try(name, args...)
	if err != nil {
		c.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func (c *realCluster) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf())
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// with is an engine's settings for the cluster.
func (c *realCluster) with() With {
	conf := c.conf()
	if c.rest != nil {
		conf = ""
	}
	return With{Conf: conf, REST: c.rest, Scratch: filepath.Join(c.dir, "scratch"), Partitions: []Partition{
		{Name: "ondemand", Rate: "3.60"}, {Name: "spot", Rate: "1.20"}, {Name: "busy", Rate: "0.90"}, {Name: "closed", Rate: "0.36"},
		{Name: "short", Rate: "3.60"},
	}}
}

// idler is an agent that waits for its end.
const idler = "#!/bin/bash\ntrap 'kill $!; exit 0' TERM\nwhile :; do sleep 1000 & wait $!; done\n"

// driver is one whose machines run a program that waits for its end.
func (c *realCluster) driver(t testing.TB) *Driver {
	t.Helper()
	exe := filepath.Join(c.dir, "idler")
	if err := os.WriteFile(exe, []byte(idler), 0o700); err != nil {
		t.Fatal(err)
	}
	s := engine.Setting{Name: "hpc", Kind: Kind, With: engine.WithOf(c.with())}
	e, err := Open(t.Context(), s, engine.Host{Dir: filepath.Join(c.dir, "data"), Socket: "unix://" + filepath.Join(c.dir, "server.sock"),
		Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	d, ok := e.Driver.(*Driver)
	if !ok {
		t.Fatal("another driver")
	}
	return d
}

// fill takes the node of the busy partition, and returns the job that has it.
func (c *realCluster) fill() string {
	c.Helper()
	id := c.do("sbatch", "--parsable", "--partition=busy", "--exclusive", "--output=/dev/null", "--wrap=sleep 1000")
	await.True(c, "the node is taken", func() bool { return c.do("squeue", "-h", "-j", id, "-o", "%T") == "RUNNING" })
	return id
}

// kill ends one of the cluster's daemons without a word, and what waits for it.
func (c *realCluster) kill(name string) {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "pids", name+".pid"))
	pid, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || err2 != nil {
		c.Fatalf("the process of %s: %q, %v, %v", name, text, err, err2)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	await.True(c, name+" is gone", func() bool { return syscall.Kill(pid, 0) != nil })
}

// begin starts a daemon of the cluster.
func (c *realCluster) begin(name string, args ...string) {
	c.Helper()
	cmd := exec.Command(name, args...) //nolint:noctx // it leaves its terminal
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf(), "PATH="+os.Getenv("PATH")+":/usr/sbin")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// saved waits until the controller has written down what it knows now: Slurm loses what it accepted in the last
// five seconds when it is killed.
func (c *realCluster) saved() {
	c.Helper()
	await.True(c, "the controller saves its jobs", c.settled)
}

// settled reports whether every job that squeue knows is older than the state on disk.
func (c *realCluster) settled() bool {
	st, err := os.Stat(filepath.Join(c.dir, "state", "job_state"))
	if err != nil {
		return false
	}
	out, err := c.try("bash", "-c", "SLURM_TIME_FORMAT=%s squeue -h -t all -o '%V %S %e'")
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
	await.True(t, "all nodes answer", func() bool {
		out, err := c.try("sinfo", "-h", "-N", "-o", "%T")
		return err == nil && !strings.ContainsAny(out, "*") && !strings.Contains(out, "unknown")
	})
}

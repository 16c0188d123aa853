// Package slurmtest starts real Slurm clusters on this host for tests.
package slurmtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"
)

// Cluster is a cluster in a folder of its own.
type Cluster struct {
	Dir  string
	Port int // of the controller; those of the nodes and of slurmrestd over TCP follow
}

// Start starts a cluster, with what test/slurm-up.sh reads from the environment, and stops it when the test ends. It
// skips the test if Slurm is not installed.
func Start(t testing.TB, env ...string) *Cluster {
	t.Helper()
	c := New(t, env...)
	t.Cleanup(func() { c.Stop(t) })
	return c
}

// New starts a cluster like Start; the caller stops it.
func New(t testing.TB, env ...string) *Cluster {
	t.Helper()
	needs(t)
	for try := 1; ; try++ {
		dir, err := os.MkdirTemp("", "sl") // short, because paths of sockets must be
		must.Do(t, err)
		c := &Cluster{Dir: dir, Port: freePorts(t, ports)}
		out, err := c.script("slurm-up.sh", append([]string{"PORT=" + strconv.Itoa(c.Port)}, env...)...)
		if err == nil {
			return c
		}
		said := out + c.logs()
		c.End()
		if try == 5 || !strings.Contains(said, "Address already in use") {
			t.Fatalf("slurm-up.sh: %v\n%s", err, said)
		}
	}
}

// Stop stops the cluster and removes its folder. If the test has failed, it logs the daemons' output.
func (c *Cluster) Stop(t testing.TB) {
	t.Helper()
	logs := c.logs()
	c.End()
	if t.Failed() {
		t.Log(logs)
	}
}

// End stops the cluster and removes its folder.
func (c *Cluster) End() {
	_, _ = c.script("slurm-down.sh") // it stops whatever it finds
	_ = os.RemoveAll(c.Dir)
}

// needs skips a test if Slurm is not installed.
func needs(t testing.TB) {
	t.Helper()
	for _, c := range []string{"slurmctld", "slurmd", "sbatch", "munged"} {
		if _, err := exec.LookPath(c); err == nil {
			continue
		}
		if _, err := os.Stat("/usr/sbin/" + c); err == nil {
			continue
		}
		t.Skipf("%s is not installed: apt-get install slurmctld slurmd slurm-client munge", c)
	}
}

// logs returns the end of each daemon's log.
func (c *Cluster) logs() string {
	var b strings.Builder
	paths, _ := filepath.Glob(filepath.Join(c.Dir, "log", "*"))
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		most := 1000
		if filepath.Base(path) == "slurmctld.log" {
			most = 4000
		}
		fmt.Fprintf(&b, "%s:\n%s\n", filepath.Base(path), text[max(0, len(text)-most):])
	}
	return b.String()
}

// ports is the number of consecutive ports of a cluster.
const ports = 9

// freePorts returns the first of n consecutive ports without a listener. Slurm accepts no open listener, so another
// program may take one of them first: then New retries. They are below the kernel's ephemeral ports, some of which
// connections of Slurm's own commands would take.
func freePorts(t testing.TB, n int) int {
	t.Helper()
	for range 1000 {
		first := 10000 + rand.IntN(22000-n)
		if allFree(t, first, n) {
			return first
		}
	}
	t.Fatalf("no %d ports in a row are free", n)
	return 0
}

func allFree(t testing.TB, first, n int) bool {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for p := first; p < first+n; p++ {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprint(":", p))
		if err != nil {
			return false
		}
		held = append(held, l)
	}
	return true
}

func (c *Cluster) script(name string, env ...string) (string, error) {
	cmd := exec.Command(filepath.Join(testbin.Root(), "test", name), c.Dir) //nolint:noctx // it ends with the test
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Conf returns the path of the cluster's configuration.
func (c *Cluster) Conf() string { return filepath.Join(c.Dir, "etc", "slurm.conf") }

// Do runs a command of Slurm.
func (c *Cluster) Do(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := c.Try(name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// Try runs a command of Slurm and returns its error. Times in its output are seconds since 1970.
func (c *Cluster) Try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.Conf(), "SLURM_TIME_FORMAT=%s")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Package slurmtest starts real Slurm clusters for tests, all of them on this machine.
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

	"scrimp/internal/test/testbin"
)

// Cluster is one, in a folder of its own.
type Cluster struct {
	Dir  string
	Port int // of the controller; those of the nodes, and of slurmrestd by TCP, follow
}

// Start starts a cluster, with what test/slurm-up.sh reads of the environment, and stops it when the test ends. Where
// Slurm is not installed the test is skipped.
func Start(t testing.TB, env ...string) *Cluster {
	t.Helper()
	c := New(t, env...)
	t.Cleanup(func() { c.Stop(t) })
	return c
}

// New starts a cluster as Start does, and leaves it to the caller to stop it.
func New(t testing.TB, env ...string) *Cluster {
	t.Helper()
	needs(t)
	for try := 1; ; try++ {
		dir, err := os.MkdirTemp("", "sl") // short: the path of a socket is
		if err != nil {
			t.Fatal(err)
		}
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

// Stop ends the cluster and removes its folder. It logs what the daemons said where the test has failed.
func (c *Cluster) Stop(t testing.TB) {
	t.Helper()
	logs := c.logs()
	c.End()
	if t.Failed() {
		t.Log(logs)
	}
}

// End ends the cluster and removes its folder.
func (c *Cluster) End() {
	_, _ = c.script("slurm-down.sh") // it ends whatever it finds
	_ = os.RemoveAll(c.Dir)
}

// needs skips a test where Slurm is not installed.
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

// logs returns the end of what each daemon has logged.
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

// ports is how many ports in a row a cluster has.
const ports = 9

// freePorts returns the first of n ports in a row that nobody listens on. Slurm takes no open listener, so another
// program may take one of them before Slurm does: then New starts the cluster again. They lie below the kernel's
// ephemeral ports, from which connections of Slurm's own commands would take some.
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
	cmd := exec.Command(filepath.Join(testbin.Root(), "test", name), c.Dir) //nolint:noctx // the end of the test ends it
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Conf is the cluster's configuration.
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

// Try runs a command of Slurm that may fail. Times are written in seconds since 1970.
func (c *Cluster) Try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.Conf(), "SLURM_TIME_FORMAT=%s")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

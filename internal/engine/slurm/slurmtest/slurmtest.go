// Package slurmtest starts real Slurm clusters for tests, all of them on this machine.
package slurmtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/test/testbin"
)

// Cluster is one, in a folder of its own.
type Cluster struct {
	Dir  string
	Port int // of the controller; those of the nodes, and of slurmrestd by TCP, follow
}

// Start starts one, with what test/slurm-up.sh reads of the environment, until the test ends. Where Slurm is not
// installed the test is skipped, and in CI it fails.
func Start(t testing.TB, env ...string) *Cluster {
	t.Helper()
	for _, c := range []string{"slurmctld", "slurmd", "sbatch", "munged"} {
		if _, err := exec.LookPath(c); err == nil {
			continue
		}
		if _, err := os.Stat("/usr/sbin/" + c); err == nil {
			continue
		}
		if os.Getenv("SCRIMP_CI") == "1" {
			t.Fatalf("%s is not installed", c)
		}
		t.Skipf("skipped: %s is not installed; .ci/run installs Slurm (apt-get install slurmctld slurmd "+
			"slurm-client munge)", c)
	}
	dir, err := os.MkdirTemp("", "sl") // short: the path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Dir: dir, Port: freePorts(t, 9)}
	t.Cleanup(func() {
		c.script(t, "slurm-down.sh")
		if t.Failed() {
			c.tell(t)
		}
		_ = os.RemoveAll(dir)
	})
	c.script(t, "slurm-up.sh", append([]string{"PORT=" + strconv.Itoa(c.Port)}, env...)...)
	return c
}

// tell logs what the controller, and the allocations, have said.
func (c *Cluster) tell(t testing.TB) {
	log, _ := os.ReadFile(filepath.Join(c.Dir, "log", "slurmctld.log"))
	t.Logf("slurmctld:\n%s", log[max(0, len(log)-4000):])
	consoles, _ := filepath.Glob(filepath.Join(c.Dir, "data", "engines", "*", "requests", "*", "*"))
	for _, path := range consoles {
		if text, _ := os.ReadFile(path); filepath.Base(path) != "run.sh" {
			t.Logf("%s:\n%s", path, text)
		}
	}
}

var ports atomic.Int32

// freePorts is the first of n ports in a row that nobody listens on, and that no other test of this process gets.
func freePorts(t testing.TB, n int) int {
	t.Helper()
	for {
		first := 18000 + os.Getpid()%800*16 + int(ports.Add(int32(n)))
		free := first+n < 32000
		for p := first; p < first+n && free; p++ {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprint(":", p))
			if err == nil {
				_ = l.Close()
			}
			free = err == nil
		}
		if free {
			return first
		}
		if first >= 32000 {
			t.Fatal("no ports are free")
		}
	}
}

func (c *Cluster) script(t testing.TB, name string, env ...string) {
	t.Helper()
	path := filepath.Join(testbin.Root(), "test", name)
	cmd := exec.Command(path, c.Dir) //nolint:noctx // the end of the test ends it
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
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

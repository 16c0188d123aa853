package slurm

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

var chaosFor = flag.Duration("chaos", 2*time.Minute, "how long a cluster and its server are hurt (make chaos-slurm)")

// A server and a cluster with every fault injected for a while lose no job and rent nothing twice: each request ran
// in one Slurm job, every job ends as it should, and nothing is left in the queue.
func TestChaos_LosesNothing(t *testing.T) {
	lane.Nightly(t, "it hurts a cluster and its server for as long as -chaos says")
	h := newHome(t, "NODEDOWN=8", "GRACE=5")
	h.engines(twoPartitions)
	rng, began := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))), time.Now()
	names, hurts := h.Chaos(*chaosFor, func(name string) (string, error) {
		h.Counts(name, "16", "")
		return h.Scrimp("run", "-y", "-d", "--force", name+".yaml")
	}, func() time.Duration { return time.Duration(3+rng.IntN(6)) * time.Second }, func() string { return h.hurt(rng) })
	h.heal()
	attempts := h.Outcomes(names, h.until, func(j client.Job) { h.Receipt(j.ID) })
	requests := h.requests()
	h.until("the queue is "+
		"empty", func() bool { return !strings.Contains(h.do("squeue", "-h", "--format=%j"), scheduler.NamePrefix) })
	t.Logf("%v: %d jobs, %d attempts, %d requests, hurt as "+
		"%v", time.Since(began).Round(time.Second), len(names), attempts, requests, hurts)
}

// requests counts the requests that have started, each of which must have run in one Slurm job.
func (h *home) requests() int {
	h.Helper()
	consoles, err := filepath.Glob(filepath.Join(h.Data, "engines", h.name, "requests", "*", "console.0.log"))
	must.Do(h, err)
	for _, path := range consoles {
		text, err := os.ReadFile(path)
		must.Do(h, err)
		if strings.Contains(string(text), "runs in another job") {
			h.Errorf("%s: a request was submitted twice, and both began:\n%s", path, text)
		}
	}
	return len(consoles)
}

// hurt injects one random fault into the cluster, and names it.
func (h *home) hurt(rng *rand.Rand) string {
	h.Helper()
	nodes := []string{"ondemand1", "ondemand2", "ondemand3", "ondemand4", "spot1", "spot2"}
	node := nodes[rng.IntN(len(nodes))]
	pause := func() { _ = wait.For(h.Context(), time.Duration(2+rng.IntN(10))*time.Second) }
	switch rng.IntN(6) {
	case 0:
		_, _ = h.try("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 5")
		return "preempted"
	case 1:
		_, _ = h.try("scontrol", "update", "nodename="+node, "state=down", "reason=chaos")
		pause()
		_, _ = h.try("scontrol", "update", "nodename="+node, "state=resume")
		return "node down"
	case 2:
		h.saved()
		h.kill("slurmctld")
		pause()
		h.begin("slurmctld", "-f", h.conf())
		return "controller killed"
	case 3:
		h.signal("slurmctld", syscall.SIGSTOP)
		pause()
		h.signal("slurmctld", syscall.SIGCONT)
		return "controller frozen"
	case 4:
		h.kill("slurmd." + node)
		pause()
		h.begin("slurmd", "-f", h.conf(), "-N", node)
		return "slurmd killed"
	}
	h.KillServer()
	return "server killed"
}

// heal repairs the cluster.
func (h *home) heal() {
	h.Helper()
	for n := range 6 {
		node := []string{"ondemand1", "ondemand2", "ondemand3", "ondemand4", "spot1", "spot2"}[n]
		_, _ = h.try("scontrol", "update", "nodename="+node, "state=resume")
	}
	h.answers(h)
}

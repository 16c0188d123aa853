package slurm

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/setting"
	"scrimp/internal/market"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/realserver"
)

const spotOnly = `engines:
  - name: NAME
    kind: slurm
    with:
      CONF
      SCRATCH
      partitions:
        - {name: spot, rate: 1.20}
`

const twoPartitions = spotOnly + "        - {name: ondemand, rate: 3.60}\n"

// A job on preemptible nodes that a more urgent job preempts saves, waits its turn and finishes, whether the cluster
// notifies scripts of a preemption or only steps. No completed step runs twice.
func TestPreemption_LetsTheJobSaveAndFinish(t *testing.T) {
	lane.Component(t, "slurm")
	for name, env := range map[string]string{"scripts are told": "USERSIGNAL=1", "steps are told": "USERSIGNAL=0",
		"slurmrestd is asked": "REST=1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, env, "GRACE=10")
			h.engines(spotOnly)
			submitted := time.Now()
			h.Counter("train", "20", "")
			h.until("its first line", func() bool { out, _ := h.Scrimp("logs", "train"); return strings.Contains(out, "began at") })
			t.Logf("from the submission to the first line: %v", time.Since(submitted))
			h.until("it works", func() bool { return h.Job("train").Step >= 6 })
			began := time.Now()
			urgent := h.do("sbatch", "--parsable", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
			h.until("its second attempt works",
				func() bool { return h.Job("train").Attempts == 2 && h.Job("train").Phase == "running" })
			h.until("it goes on", func() bool { out, _ := h.Scrimp("logs", "train"); return strings.Count(out, "began at") == 2 })
			t.Logf("from the notice to the first step elsewhere: %v", time.Since(began))
			if state := h.do("squeue", "-h", "-t", "all", "-j", urgent, "-o", "%T"); state == "PENDING" {
				t.Errorf("the urgent job is %s", state)
			}
			h.finished("train", 2)
			r := h.Receipt("train")
			if r.Interrupted != 1 || len(r.Interruptions) != 1 || r.Interruptions[0].Notice == 0 {
				t.Errorf("interruptions: %+v", r.Interruptions)
			}
			log := h.Does("logs", "train")
			if again := realserver.Repeated(log); again > 1 {
				t.Errorf("%d steps were done twice:\n%s", again, log)
			}
		})
	}
}

// A node that is taken down without notice interrupts its job, which continues on another one.
func TestNodeDown_InterruptsItsJob(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	h := newHome(t, "GRACE=2")
	h.engines(twoPartitions)
	h.Counter("train", "16", "resources: {capacity: [on-demand]}")
	h.until("it has saved", func() bool { return h.Job("train").SavedStep >= 4 })
	node := h.do("squeue", "-h", "-j", slurmJob(h.Job("train").Machine), "-o", "%N")
	h.do("scontrol", "update", "nodename="+node, "state=down", "reason=test")
	h.finished("train", 2)
	if r := h.Receipt("train"); r.Interrupted != 1 {
		t.Errorf("interruptions: %+v", r.Interruptions)
	}
}

// On a node whose slurmd is killed, the old program continues, because nobody can end it there. The job continues
// elsewhere, and what the old program saves from then on does not count.
func TestLostNode_IsFenced(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	h := newHome(t, "NODEDOWN=6")
	h.engines(twoPartitions)
	h.Counter("train", "60", "resources: {capacity: [on-demand]}")
	h.until("it has saved", func() bool { return h.Job("train").SavedStep >= 4 })
	old := h.Job("train").Machine
	agent := h.pidOf(old)
	node := h.do("squeue", "-h", "-j", slurmJob(old), "-o", "%N")
	h.kill("slurmd." + node)
	// Freeze the old agent until the next attempt has started, so that it cannot learn of that before: it would then
	// write.
	must.Do(t, syscall.Kill(agent, syscall.SIGSTOP))
	began := time.Now()
	h.until("the death is known", func() bool { j := h.Job("train"); return j.Attempts == 2 || j.Phase != "running" })
	t.Logf("from the death to its detection: %v", time.Since(began))
	h.until("its second attempt works",
		func() bool { j := h.Job("train"); return j.Attempts == 2 && j.Phase == "running" })
	t.Logf("from the death to the next attempt: %v", time.Since(began))
	if syscall.Kill(agent, 0) != nil {
		t.Fatal("the old agent has ended: there is nothing to fence")
	}
	must.Do(t, syscall.Kill(agent, syscall.SIGCONT))
	eventually.True(t, "the old agent ends", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(agent) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	h.finished("train", 2)
	if r := h.Receipt("train"); r.Attempts != 2 {
		t.Errorf("%d attempts", r.Attempts)
	}
}

// pidOf returns the process of a machine's agent.
func (h *home) pidOf(machine string) int {
	h.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "scratch", "scrimp-"+strconv.Itoa(os.Getuid()), machine, "pid"))
	pid, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || err2 != nil {
		h.Fatalf("the agent of %s: %q, %v, %v", machine, text, err, err2)
	}
	return pid
}

// A controller that is killed and comes back finds its jobs, and scrimp finds its machines. A controller that does
// not answer, so that each command hangs, delays no job of another engine.
func TestDeadController_DoesNotDelayOtherEngines(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	h := newHome(t, "GRACE=2")
	h.File("d/near.yaml", "name: near\noffers:\n  - {zone: here, region: r, machine: m, cpus: 2, memory: "+
		"1GiB, capacity: on-demand, price: 9}\n")
	h.engines(twoPartitions + "  - name: local\n    kind: local\n    with: {market: near.yaml}\n")
	h.Counter("train", "40", "resources: {zones: [ondemand]}")
	h.until("it works", func() bool { return h.Job("train").Step >= 4 })
	machine := h.Job("train").Machine
	h.saved()
	h.signal("slurmctld", syscall.SIGSTOP)
	h.File("w/near.yaml", "name: near\ncommand: 'true'\nresources: {zones: [here]}\n")
	h.Does("run", "-y", "near.yaml") // it ends before the controller continues
	h.until("the engine is known to be "+
		"away", func() bool { return strings.Contains(h.Does("server", "status"), "no answer within") })
	h.kill("slurmctld")
	h.begin("slurmctld", "-f", h.conf())
	h.until("the engine answers again", func() bool { return !strings.Contains(h.Does("server", "status"), "away") })
	if j := h.Job("train"); j.Machine != machine && !j.Closed || j.Attempts != 1 { // on a slow machine it has ended
		t.Errorf("it was on %s, and is on %s after %d attempts", machine, j.Machine, j.Attempts)
	}
	h.finished("train", 1)
}

// The machines of a gang are the nodes of one job.
func TestGang_IsOneAllocation(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	h := newHome(t, "GRACE=2")
	h.engines(twoPartitions)
	h.File("w/gang.yaml", `name: gang
nodes: 3
resources: {capacity: [on-demand]}
command: 'echo "rank $SCRIMP_NODE of $SCRIMP_NODES, slurm $SLURM_PROCID of $SLURM_NTASKS, job ${SLURM_JOB_ID-none}, gpus $CUDA_VISIBLE_DEVICES"'
`)
	h.Does("run", "-y", "gang.yaml")
	out := h.Does("logs", "gang", "--node", "all")
	for _, rank := range []string{"0", "1", "2"} {
		if want := "[" + rank + "] rank " + rank + " of 3, slurm " + rank + " of 3, job none, gpus " +
			"0,1,2,3\n"; !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	h.until("it is billed", func() bool { return h.Job("gang").Closed })
	h.Receipt("gang")
	jobs := h.do("squeue", "-h", "-t", "all", "-o", "%k") // including those of other tests
	if n := strings.Count(jobs, "offer="+h.name+"%2F"); n != 1 {
		t.Errorf("it took %d jobs of Slurm:\n%s", n, jobs)
	}
}

// A job that is longer than the partition's time limit continues in the next allocation.
func TestTimeLimit_ContinuesInTheNextAllocation(t *testing.T) {
	lane.Nightly(t, "a partition's shortest time limit is a minute")
	t.Parallel()
	h := newHome(t, "GRACE=2")
	h.engines(strings.ReplaceAll(spotOnly, "spot", "short"))
	h.Counts("train", "130", "") // 65 s of steps, at most a minute per allocation
	h.submit("train")
	h.finished("train", 2)
	log := h.Does("logs", "train")
	if again := realserver.Repeated(log); again > 4 {
		t.Errorf("%d steps were done twice:\n%s", again, log)
	}
}

// findings returns the findings of an examination by name; failed ones begin with a star.
func findings(t testing.TB, d *Driver) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, f := range d.Examine(t.Context()) {
		text := f.Text
		if !f.OK {
			text = "* " + text
		}
		all[f.Name] = text
	}
	return all
}

// Wrong settings and refusals of the cluster are reported with the fix, and leave nothing in the queue.
func TestBadInput_SaysWhatToDo(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	c := newCluster(t, "GRACE=2")
	d := c.driver(t)
	for name, text := range findings(t, d) {
		if strings.HasPrefix(text, "*") != (name == "partition closed") {
			t.Errorf("of a cluster that is well: %s: %s", name, text)
		}
	}
	d.with.Partitions = append(d.with.Partitions, setting.Partition{Name: "gone", Rate: "1"}, setting.Partition{Name: "busy", Machine: "big", CPUs: 99,
		MachineMemory: 1 << 30, Constraint: ""})
	d.server, d.cluster = "unix:///nowhere/server.sock", nil
	all := findings(t, d)
	for name, want := range map[string]string{"partition gone": "sinfo -s lists them", "account for busy " +
		"big": "configuration is not available"} {
		if !strings.HasPrefix(all[name], "* ") || !strings.Contains(all[name], want) {
			t.Errorf("%s: %q, want %q", name, all[name], want)
		}
	}
	a := &again{Driver: d}
	for offer, want := range map[market.OfferID]error{c.offer("gone/4c-1g/on-demand"): engine.ErrNotFound, c.offer("busy/big/on-demand"): engine.ErrNoCapacity} {
		if _, err := a.Launch(t.Context(), engine.Request{Key: "k", Nodes: 1, Offer: offer}); !errors.Is(err, want) || !engine.Refused(err) {
			t.Errorf("%s: %v, want %v", offer, err, want)
		}
	}
	// A node that does not reach the server reports it, and no other machine is rented for a while.
	q := engine.Request{Key: "far", Nodes: 1, Offer: c.offer("ondemand/a100x4-8c-3g/on-demand")}
	if _, err := a.Launch(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "its end", func() bool {
		list, err := d.List(t.Context())
		return err == nil && len(list) == 1 && list[0].State == engine.Ended && list[0].Cause == engine.Stopped
	})
	q.Key = "further"
	if _, err := a.Launch(t.Context(), q); !errors.Is(err, engine.ErrNoCapacity) || !strings.Contains(err.Error(), "agents: listen") {
		t.Errorf("of a node that does not see the server: %v", err)
	}
	if queue := c.do("squeue", "-h"); queue != "" {
		t.Errorf("left in the queue: %s", queue)
	}
	c.signal("munged", syscall.SIGKILL)
	if all := findings(t, d); !strings.Contains(all["credentials"], "systemctl restart munge") {
		t.Errorf("without munge: %q", all)
	}
	c.begin("sh", filepath.Join(c.cluster.Dir, "etc", "munge.sh"))
	eventually.True(t, "it answers again", func() bool { _, err := d.List(t.Context()); return err == nil })
}

// If the commands are missing, nothing else is tried.
func TestMissingCommands_AreNamed(t *testing.T) {
	d, err := newDriver("hpc", setting.With{Commands: t.TempDir()}, t.TempDir(), slog.New(slog.DiscardHandler))
	must.Do(t, err)
	if all := d.Examine(t.Context()); len(all) != 1 || all[0].OK || !strings.Contains(all[0].Text, "apt-get "+
		"install slurm-client") {
		t.Errorf("%+v", all)
	}
}

// A job whose machine waits in Slurm's queue reports Slurm's reason. It costs nothing, and starts when its node is
// free.
func TestPendingJob_SaysWhatItWaitsFor(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	h := newHome(t, "GRACE=2")
	h.engines(strings.ReplaceAll(spotOnly, "spot", "busy"))
	filler := h.fill()
	h.Counts("train", "4", "")
	h.submit("train")
	h.until("it says why it waits", func() bool { return strings.Contains(h.Job("train").Detail, "in use") })
	if j := h.Job("train"); !j.Spent.IsZero() || j.Phase != "requested" || !strings.Contains(h.Does("status", "train"), "waits: Resources") {
		t.Errorf("%+v\n%s", j, h.Does("status", "train"))
	}
	h.do("scancel", filler)
	h.finished("train", 1)
}

package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/decide/receipt"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// hasTorch returns Debian's own Python, which finds python3-torch.
func hasTorch(t *testing.T) string {
	t.Helper()
	python := "/usr/bin/python3"
	if exec.Command(python, "-c", "import torch").Run() != nil {
		t.Skip("python3-torch is not installed")
	}
	return python
}

// ddpJob writes the example of data parallel training for a number of machines.
func (h *home) ddpJob(python, nodes, steps string) {
	h.t.Helper()
	example := filepath.Join("..", "..", "examples", "ddp")
	train, err := os.ReadFile(filepath.Join(example, "train.py"))
	must.Do(h.t, err)
	file, err := os.ReadFile(filepath.Join(example, "job.yaml"))
	must.Do(h.t, err)
	job := strings.NewReplacer("exec python3", "exec "+python, "--steps $STEPS", "--steps $STEPS --pause $PAUSE", "interval: auto",
		"interval: 2s", `STEPS: "2000"`, `PAUSE: "0"`+"\n  "+`STEPS: "`+steps+`"`,
		"steps: 2000", "steps: "+steps, "resources:", "nodes: "+nodes+"\nresources:").Replace(string(file))
	for _, want := range []string{python, "--pause", "PAUSE:", "interval: 2s", "nodes: " + nodes, "steps: " + steps} {
		if !strings.Contains(job, want) {
			h.t.Fatalf("the job file has changed:\n%s", job)
		}
	}
	h.write("train.py", string(train))
	h.write("job.yaml", job)
}

// slows makes each step of the next job slow enough that the job cannot end before its fault, even on a fast machine.
func (h *home) slows() {
	h.t.Helper()
	path := filepath.Join(h.dir, "job.yaml")
	job, err := os.ReadFile(path)
	must.Do(h.t, err)
	h.write("job.yaml", strings.Replace(string(job), `PAUSE: "0"`, `PAUSE: "0.1"`, 1))
}

var weightsOf = regexp.MustCompile(`rank (\d+) done: weights ([0-9a-f]{64})`)

// weights returns the final weights of all ranks of a job.
func (h *home) weights(job string) string {
	h.t.Helper()
	found := weightsOf.FindAllStringSubmatch(h.do("logs", job, "--node", "all"), -1)
	if len(found) == 0 {
		h.t.Fatalf("no rank of %s says what it ended with:\n%s", job, h.do("logs", job, "--node", "all"))
	}
	for _, f := range found {
		if f[2] != found[0][2] {
			h.t.Errorf("the ranks of %s ended with other weights", job)
		}
	}
	return found[0][2]
}

// kills ends all processes of a machine, like a power failure.
func (h *home) kills(machine string) {
	h.t.Helper()
	for _, pid := range h.processes(machine) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// A training on two machines loses one without notice, continues on the other and a new one, and ends with the weights
// of an undisturbed run. Its cost is known per machine.
func TestGang_SameWeightsAfterLosingMachine(t *testing.T) {
	lane.Component(t, "pytorch")
	t.Parallel()
	python := hasTorch(t)
	h := newHome(t)
	h.ddpJob(python, "2", "300")
	h.do("run", "-y", "job.yaml")
	whole := h.weights("pytorch-ddp")
	h.slows()
	h.do("run", "-y", "--detach", "job.yaml")
	const job = "pytorch-ddp-2"
	h.until("it has saved", func() bool { return h.job(job).SavedStep > 0 && len(h.job(job).Nodes) == 2 })
	first := h.machines()
	if len(first) != 2 || first[0].Nodes != 2 || first[0].Job != job {
		t.Fatalf("it has the machines %+v", first)
	}
	victim, survivor := "", ""
	for _, m := range first {
		if m.Node == 1 {
			victim = m.Instance
		} else {
			survivor = m.Instance
		}
	}
	h.kills(victim)
	h.until("it is done", func() bool { return h.job(job).State == "succeeded" && h.job(job).Closed })
	if got := h.weights(job); got != whole {
		t.Errorf("it ends with the weights %.12s, undisturbed with %.12s", got, whole)
	}
	var r receipt.Receipt
	must.Do(t, json.Unmarshal([]byte(h.out("receipt", "--json", job)), &r))
	last := r.Tries[len(r.Tries)-1]
	if r.Attempts < 2 || len(last.Nodes) != 2 || last.Restored == "" || !r.Ledger.Agrees {
		t.Errorf("%d attempts, the last on %+v from %q", r.Attempts, last.Nodes, last.Restored)
	}
	if last.Nodes[0].Instance != survivor {
		t.Errorf("the last attempt began on %s, and %s was there", last.Nodes[0].Instance, survivor)
	}
	h.adds(job)
	h.do("ledger", "verify")
}

// An elastic gang takes the fewest machines, and more if its deadline needs them.
func TestGang_ElasticGangTakesMachinesForDeadline(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", `name: once
speed: 720
offers:
  - {zone: a, region: r, machine: m, cpus: 2, memory: 4GiB, capacity: on-demand, price: 0.1}
`)
	for deadline, nodes := range map[string]int{"40h": 1, "12h": 3} {
		name := "within-" + deadline
		h.write("job.yaml", "name: "+name+"\nnodes: 1..4\nwork: {time: 4h}\ndeadline: in "+deadline+"\ncommand: 'test $SCRIMP_NODES -eq "+
			strconv.Itoa(nodes)+"; exit $(( 10 + $? ))'\n")
		if out, err := h.try("run", "-y", "job.yaml", "--market", "market.yaml"); !strings.Contains(out, "exit code 10") {
			t.Errorf("%v: %s", err, out)
			continue
		}
		if j := h.job(name); j.Exit != 10 {
			t.Errorf("4 h of work within %s: it has not %d machines: %+v", deadline, nodes, j)
		}
	}
}

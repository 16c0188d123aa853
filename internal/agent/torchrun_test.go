package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// torch returns a Python that has PyTorch, preferably Debian's own, otherwise another one on the PATH.
func torch(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.Command(path, "-c", "import torch.distributed").Run() == nil {
			return path
		}
	}
	t.Skip("python3-torch is not installed")
	return ""
}

// ddp returns a task that runs examples/ddp with torchrun and no arguments of torchrun.
func ddp(t *testing.T, python string) api.Assignment {
	t.Helper()
	script, err := filepath.Abs("../../examples/ddp/train.py")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(script); err != nil { // go test's cache notices only files that the test itself reads
		t.Fatal(err)
	}
	a := ofGang(t, "", "PET_REDIRECTS=1", "PET_TEE=1", "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1", "PET_MONITOR_INTERVAL=0.2")
	a.Args = []string{python, "-m", "torch.distributed.run", script, "--steps", "120", "--pause", "0.03", "--save-every", "0.4"}
	a.Progress = api.Progressing{Pattern: `step (?P<step>\d+)/(?P<total>\d+) loss (?P<loss>\S+)`, Saved: `saved step (?P<step>\d+)`}
	a.Grace = 20 * time.Second
	return a
}

var (
	weightsLine = regexp.MustCompile(`rank \d+ done: weights ([0-9a-f]{64})`)
	beginsLine  = regexp.MustCompile(`rank \d+ of (\d+) begins at step (\d+)`)
)

// weights returns the final weights, which are equal on all machines.
func weights(t *testing.T, machines ...*member) string {
	t.Helper()
	all := ""
	for rank, m := range machines {
		if end := m.ends(); end.Reason != api.EndCompleted {
			t.Fatalf("rank %d ended %+v:\n%s", rank, end, m.log())
		}
		m.server.wait("its last line", func() bool { return weightsLine.Match(m.server.log) })
		w := weightsLine.FindStringSubmatch(m.log())[1]
		if all == "" {
			all = w
		}
		if w != all {
			t.Errorf("rank %d ends with the weights %.12s, rank 0 with %.12s", rank, w, all)
		}
	}
	return all
}

// resumes fails if a gang restarted the training from nothing.
func resumes(t *testing.T, m *member) {
	t.Helper()
	if b := beginsLine.FindStringSubmatch(m.log()); b == nil || b[2] == "0" || b[2] == "120" {
		t.Errorf("the next gang begins with %q", b)
	}
}

// Real torchrun processes on machines with different addresses meet without arguments. A run of
// fixed size that loses a worker, with or without notice, ends with the same weights as an
// undisturbed run. A run that continues with fewer machines ends too.
func TestTorchrun_LosesMachineButNoWork(t *testing.T) {
	lane.Nightly(t, "starts twenty torchruns, and kills some")
	python := torch(t)
	task := ddp(t, python)
	whole := ""
	t.Run("undisturbed", func(t *testing.T) {
		gang := newGang(t)
		a, b := gang.machine(10), gang.machine(11)
		gang.begin(1, task, a, b)
		whole = weights(t, a, b)
	})
	if t.Failed() {
		return
	}
	t.Run("a worker is killed without notice", func(t *testing.T) {
		gang := newGang(t)
		a, b, c := gang.machine(20), gang.machine(21), gang.machine(22)
		gang.begin(1, task, a, b)
		a.server.waitFor("a checkpoint", func(m api.Message) bool { return m.Saved != nil })
		b.hard()
		gang.begin(2, task, a, c) // the machine of rank 0 stays
		if got := weights(t, a, c); got != whole {
			t.Errorf("it ends with the weights %.12s, undisturbed with %.12s", got, whole)
		}
		resumes(t, a)
	})
	t.Run("a worker gets a notice", func(t *testing.T) {
		gang := newGang(t)
		a, b := gang.machine(30), gang.machine(31)
		gang.begin(1, task, a, b)
		a.prints("step 1/") // the agent checks for notices once a second, and two thirds of the run are left then
		b.market.notice(2 * time.Minute)
		for rank, m := range []*member{a, b} {
			if end := m.ends(); end.Reason != api.EndDrained || end.Saved != (rank == 0) {
				t.Errorf("rank %d ended %+v:\n%s", rank, end, m.log())
			}
		}
		c, d := gang.machine(32), gang.machine(33)
		gang.begin(2, task, c, d)
		if got := weights(t, c, d); got != whole {
			t.Errorf("it ends with the weights %.12s, undisturbed with %.12s", got, whole)
		}
		resumes(t, c)
	})
	t.Run("rank 0 hears of the notice from its collective", func(t *testing.T) {
		task := task
		task.Report = time.Hour                                             // its agent exchanges only urgent messages
		task.Args = append(slices.Clone(task.Args), "--save-every", "1000") // saves once, at the end
		gang := newGang(t)
		a, b := gang.machine(50), gang.machine(51)
		gang.begin(1, task, a, b)
		log := filepath.Join(a.config.MachineDir, "tasks", "job-1.1", "log")
		eventually.True(t, "rank 0's first step", func() bool { text, _ := os.ReadFile(log); return strings.Contains(string(text), "step 1/") })
		b.market.notice(2 * time.Minute)
		for rank, m := range []*member{a, b} {
			if end := m.ends(); end.Reason != api.EndDrained || end.Saved != (rank == 0) {
				t.Errorf("rank %d ended %+v:\n%s", rank, end, m.log())
			}
		}
		c, d := gang.machine(52), gang.machine(53)
		task.Report = 0
		gang.begin(2, task, c, d)
		if got := weights(t, c, d); got != whole {
			t.Errorf("it ends with the weights %.12s, undisturbed with %.12s", got, whole)
		}
		resumes(t, c)
	})
	t.Run("it goes on with fewer", func(t *testing.T) {
		gang := newGang(t)
		a, b := gang.machine(40), gang.machine(41)
		gang.begin(1, task, a, b)
		a.server.waitFor("a checkpoint", func(m api.Message) bool { return m.Saved != nil })
		b.hard()
		gang.begin(2, task, a)
		weights(t, a)
		resumes(t, a)
	})
}

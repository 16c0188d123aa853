package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// counting is a program that continues counting from its checkpoint, and prints the time of each step.
const counting = `n=$(cat checkpoints/n 2>/dev/null || echo 0)
while :; do
  n=$((n+1)); echo $n > checkpoints/n.tmp; mv checkpoints/n.tmp checkpoints/n
  echo "step=$n at=$(date +%s%N) from=$$"
  sleep 0.05
done`

// counted is the line of a job file that matches the steps of that program. Each step is saved when it is printed.
// Without that information scrimp would wait for a second without a save, and copy after 20 s at the latest.
const counted = `progress: {pattern: 'step=(?P<step>\d+)', saved: 'step=(?P<step>\d+) at'}`

var countedStep = regexp.MustCompile(`step=(\d+) at=(\d+) from=(\d+)`)

// step is a line of that program.
type step struct {
	n   int
	at  time.Time
	pid string
}

// steps returns the program's steps on one machine so far, from its output.
func (h *home) steps(machine string) (list []step) {
	var out []byte
	paths, _ := filepath.Glob(filepath.Join(h.data, "*", "machines", machine, "tasks", "*", "log"))
	for _, path := range paths {
		out, _ = os.ReadFile(path)
	}
	for _, m := range countedStep.FindAllSubmatch(out, -1) {
		n, _ := strconv.Atoi(string(m[1]))
		at, _ := strconv.ParseInt(string(m[2]), 10, 64)
		list = append(list, step{n, time.Unix(0, at), string(m[3])})
	}
	return list
}

// processes returns the processes of a machine: all whose environment names it.
func (h *home) processes(machine string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		env, err2 := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && err2 == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool {
			return string(v) == "SCRIMP_INSTANCE_ID="+machine || string(v) == "SCRIMP_INSTANCE="+machine
		}) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// BenchmarkResume kills the agent and its children with SIGKILL, on a market with one machine, and reports the time
// until the program's next step, by the program's own clock. The promise is less than 5 s plus the program's own start;
// here the program is a shell.
//
//	go test -run '^$' -bench Resume -benchtime 10x ./internal/cli
func BenchmarkResume(b *testing.B) {
	h := newHome(b)
	h.write("market.yaml", "name: one\noffers:\n  - {zone: a, region: r, machine: m, cpus: 1, memory: 1GiB, capacity: spot, price: 1}\n")
	h.write("job.yaml", "name: counter\ncommand: |\n  "+string(bytes.ReplaceAll([]byte(counting), []byte("\n"), []byte("\n  ")))+"\ncheckpoint: {dir: checkpoints, interval: 1s}\n"+counted+"\n")
	h.do("run", "-y", "-d", "job.yaml", "--market", "market.yaml")
	var took []time.Duration
	machine := ""
	for b.Loop() {
		h.until("it counts and has saved", func() bool {
			j := h.job("counter")
			machine = j.Machine
			s := h.steps(machine)
			return len(s) > 20 && j.SavedStep > int64(s[0].n)
		})
		killed := time.Now()
		for _, pid := range h.processes(machine) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		before := h.steps(machine)
		var first step
		h.until("it counts on", func() bool {
			next := h.job("counter").Machine
			if next == "" || next == machine {
				return false
			}
			if s := h.steps(next); len(s) > 0 {
				first = s[0]
			}
			return first.n > 0
		})
		if first.n <= 1 || first.n > before[len(before)-1].n+1 {
			b.Fatalf("began at step %d, after step %d", first.n, before[len(before)-1].n)
		}
		took = append(took, first.at.Sub(killed))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds(), "s/resume")
	b.ReportMetric(took[len(took)-1].Seconds(), "s/slowest")
	if d := took[len(took)-1]; d > 5*time.Second {
		b.Errorf("%v from the kill to the first new step, want less than 5 s", d)
	}
	b.Log(took)
}

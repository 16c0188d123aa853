package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

const oneMachine = "name: one\noffers:\n  - {zone: a, region: r, machine: m, cpus: 1, memory: 1GiB, capacity: spot, price: 1}\n"

// script returns a job file that runs a script, with further lines.
func script(name, text string, lines ...string) string {
	return "name: " + name + "\ncommand: |\n  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n" + strings.Join(lines, "\n") + "\n"
}

// Recipients of a signal among the processes of a data folder.
const (
	everyone = iota
	house    // server and market
	machines // agents and programs
)

// signal sends a signal to processes of the data folder and returns their number.
func (h *home) signal(sig syscall.Signal, who int) (n int) {
	h.t.Helper()
	entries, err := os.ReadDir("/proc")
	must.Do(h.t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		rented := strings.Contains(string(env), "SCRIMP_INSTANCE")
		if (strings.Contains(string(line), h.data) || strings.Contains(string(env), h.data)) && (who == everyone || rented == (who == machines)) {
			if syscall.Kill(pid, sig) == nil {
				n++
			}
		}
	}
	return n
}

func TestAway_LaptopSleepKeepsMachine(t *testing.T) {
	lane.Nightly(t, "sleeps longer than the server waits for a silent agent")
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", oneMachine)
	h.write("job.yaml", script("counter", counting, "checkpoint: {dir: checkpoints, interval: 1s}", counted))
	h.do("run", "-y", "-d", "job.yaml", "--market", "market.yaml")
	h.until("it counts", func() bool { return len(h.steps(h.job("counter").Machine)) > 20 })
	before := h.job("counter")
	// The pause exceeds the 20 s after which the server treats an agent as silent: it must not count the agent's sleep.
	if n := h.signal(syscall.SIGSTOP, everyone); n < 4 {
		t.Fatalf("stopped %d processes, want the server, the market, the agent and the program", n)
	}
	asleep := time.Now()
	eventually.Past(t, asleep.Add(22*time.Second))
	woke := time.Now()
	h.signal(syscall.SIGCONT, house)
	eventually.Past(t, woke.Add(2*time.Second)) // during which the server checks everything
	h.signal(syscall.SIGCONT, machines)
	var after []step
	h.until("it counts on", func() bool {
		after = h.steps(before.Machine)
		return after[len(after)-1].at.After(woke.Add(3 * time.Second))
	})
	for _, s := range after {
		if s.at.After(asleep.Add(2*time.Second)) && s.at.Before(woke) {
			t.Fatalf("the test is void: step %d was made asleep", s.n)
		}
	}
	h.until("the server has heard of it", func() bool { return h.job("counter").Step >= int64(after[len(after)-1].n) })
	now := h.job("counter")
	if now.Machine != before.Machine || now.Attempts != 1 || now.Interruptions != 0 {
		t.Errorf("on %s after %d attempts, it was on %s", now.Machine, now.Attempts, before.Machine)
	}
	for n, s := range after {
		if s.n != n+1 {
			t.Fatalf("step %d came as number %d", s.n, n+1)
		}
	}
	h.do("cancel", "counter")
	h.until("it is over", func() bool { return h.job("counter").Closed })
	h.do("ledger", "verify")
}

func TestAway_UnwritableStoreIsReportedAndNothingIsLost(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", oneMachine)
	store := filepath.Join(h.dir, "store")
	must.Do(t, os.Mkdir(store, 0o700))
	h.write("job.yaml", script("counter", counting, "checkpoint: {dir: checkpoints, interval: 1s, store: 'file://"+store+"'}", counted))
	h.do("run", "-y", "-d", "job.yaml", "--market", "market.yaml")
	h.until("it has saved", func() bool { return h.job("counter").SavedStep > 0 })
	// Root can write anywhere, but nobody can create a file below a file.
	must.Do(t, os.Rename(store, store+".away"))
	h.write("store", "")
	h.until("the status says it", func() bool {
		return strings.Contains(h.do("status", "counter"), "checkpoints are not kept")
	})
	if out := h.do("status", "counter"); !strings.Contains(out, "not a directory") || !strings.Contains(out, "the program runs on") {
		t.Errorf("no cause in\n%s", out)
	}
	saved := h.job("counter").SavedStep
	must.Do(t, os.Remove(store))
	must.Do(t, os.Rename(store+".away", store))
	h.until("it saves again, and the status is clean", func() bool {
		j := h.job("counter")
		return j.SavedStep > saved && j.Detail == ""
	})
	if j := h.job("counter"); j.Attempts != 1 {
		t.Errorf("%d attempts", j.Attempts)
	}
}

func TestAway_ImpossibleCheckpointFolderEndsJob(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", oneMachine)
	h.write("blocked", "")
	h.write("job.yaml", script("counter", counting, "checkpoint: {dir: "+filepath.Join(h.dir, "blocked", "x")+"}"))
	out, err := h.try("run", "-y", "job.yaml", "--market", "market.yaml")
	if err == nil {
		t.Errorf("exits 0:\n%s", out)
	}
	if out := h.do("status", "counter"); !strings.Contains(out, "checkpoint folder") || !strings.Contains(out, "not a directory") {
		t.Errorf("no reason in\n%s", out)
	}
}

func TestAway_ProgramRunsWithoutServer(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", oneMachine)
	h.write("job.yaml", script("counter", counting, "checkpoint: {dir: checkpoints, interval: 1h}", counted))
	h.do("run", "-y", "-d", "job.yaml", "--market", "market.yaml")
	h.until("it counts", func() bool { return len(h.steps(h.job("counter").Machine)) > 20 })
	machine := h.job("counter").Machine
	var s api.Server
	must.Do(t, json.Unmarshal([]byte(h.out("server", "status", "--json")), &s))
	must.Do(t, syscall.Kill(s.PID, syscall.SIGKILL))
	at := time.Now()
	h.until("it counts on for a while without a server", func() bool {
		l := h.steps(machine)
		return l[len(l)-1].at.After(at.Add(5 * time.Second))
	})
	h.until("another server knows all of it", func() bool {
		l := h.steps(machine)
		j := h.job("counter")
		return j.Machine == machine && j.Attempts == 1 && j.Step > 0 && j.Step >= int64(l[len(l)-1].n-60)
	})
}

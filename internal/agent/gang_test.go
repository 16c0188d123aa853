package agent

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/wire/api"
)

// ofGang returns a task for a gang that keeps its checkpoints in the server's store.
func ofGang(t testing.TB, play string, env ...string) api.Assignment {
	a := assign(t, play, env...)
	a.Checkpoint = api.Checkpoints{URL: api.ServerStore, Prefix: "jobs/job-1/", KeepLast: 2}
	a.Progress.Pattern = `step=(?P<step>\d+) loss=(?P<loss>\S+)`
	return a
}

// Two machines register with different addresses, each reaches what listens on the other, and their
// programs find each other through the variables of torchrun, Slurm and scrimp.
func TestGang_ProgramsFindEachOther(t *testing.T) {
	t.Parallel()
	gang := newGang(t)
	a, b := gang.machine(0), gang.machine(1)
	gang.begin(1, ofGang(t, "env", "SLURM_JOB_NAME=own"), a, b)
	port := strconv.Itoa(a.assignment().MasterPort)
	for rank, m := range []*member{a, b} {
		if end := m.ends(); end.Reason != api.EndCompleted {
			t.Fatalf("rank %d ended %+v", rank, end)
		}
		m.server.wait("its whole log", func() bool { return int64(len(m.server.log)) >= m.server.logEnd })
		if got := m.server.registered.Address; got != m.address {
			t.Errorf("rank %d registered with the address %q, its metadata says %q", rank, got, m.address)
		}
		mine := strconv.Itoa(rank)
		for _, want := range []string{
			"SCRIMP_NODE=" + mine, "SCRIMP_NODES=2", "SCRIMP_NODE_ADDRESSES=" + a.address + "," + b.address, "SCRIMP_PROCS_PER_NODE=1",
			"MASTER_ADDR=" + a.address, "MASTER_PORT=" + port, "NODE_RANK=" + mine,
			"PET_NNODES=2", "PET_NODE_RANK=" + mine, "PET_NPROC_PER_NODE=1", "PET_MASTER_ADDR=" + a.address, "PET_MASTER_PORT=" + port,
			"SLURM_JOB_NUM_NODES=2", "SLURM_NNODES=2", "SLURM_NODEID=" + mine, "SLURM_JOB_NODELIST=" + a.address + "," + b.address,
			"SLURM_NTASKS=2", "SLURM_PROCID=" + mine, "SLURM_LOCALID=0", "SLURM_JOB_NAME=own", "GLOO_SOCKET_IFNAME=lo",
		} {
			if !strings.Contains("\n"+m.log(), "\n"+want+"\n") {
				t.Errorf("the program of rank %d does not see %q:\n%s", rank, want, m.log())
			}
		}
	}
	if a.address == b.address {
		t.Skip("skipped: this system has one loopback address")
	}
	l, err := net.Listen("tcp", net.JoinHostPort(a.address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(b.address)}}
	c, err := from.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("%s does not reach %s: %v", b.address, a.address, err)
	}
	_ = c.Close()
}

// The other ranks restore what rank 0 restores, even if they start first. Only rank 0 reports for
// the job and publishes, and each rank has its own log.
func TestGang_RankZeroReportsForAll(t *testing.T) {
	t.Parallel()
	gang := newGang(t)
	first := gang.machine(0)
	gang.begin(1, ofGang(t, "train", "TEST_STEPS=20"), first)
	if end := first.ends(); !end.Saved {
		t.Fatalf("the first attempt ended %+v", end)
	}
	a, b := gang.machine(1), gang.machine(2)
	gang.begin(2, ofGang(t, "train", "TEST_STEPS=40"), a, b)
	for rank, m := range []*member{a, b} {
		if end := m.ends(); end.Reason != api.EndCompleted || end.Step != 40 || end.Saved != (rank == 0) {
			t.Errorf("rank %d ended %+v", rank, end)
		}
		if s := told(m.server, started); len(s) != 1 || s[0].Step != 20 || s[0].Restored != "000001-000001" {
			t.Errorf("rank %d started from %+v", rank, s)
		}
		if steps, saves := len(told(m.server, stepped)), len(told(m.server, savedIn)); (steps > 0) != (rank == 0) || (saves > 0) != (rank == 0) {
			t.Errorf("rank %d reported %d times progress and %d checkpoints", rank, steps, saves)
		}
		if !strings.HasPrefix(m.log(), "begin at 20 restored 000001-000001\n") {
			t.Errorf("the log of rank %d is %.80q", rank, m.log())
		}
	}
}

// If each rank's folder is a share of the checkpoint, each rank gets its own share back.
func TestGang_RestoresShareOfEachRank(t *testing.T) {
	t.Parallel()
	gang := newGang(t)
	task := ofGang(t, "")
	task.Args, task.Checkpoint.AllRanks = nil, true
	task.Progress.Saved = `^saved (?P<step>\d+)`
	// A rank ends only after the whole checkpoint is kept, like a program that continues.
	task.Command = "echo part $SCRIMP_NODE > $SCRIMP_CHECKPOINT_DIR/part; echo saved 7; until ls " +
		filepath.Join(gang.kept, "jobs/job-1/manifests") + "/* 2>/dev/null; do sleep 0.02; done"
	a, b := gang.machine(0), gang.machine(1)
	gang.begin(1, task, a, b)
	for rank, m := range []*member{a, b} {
		if end := m.ends(); end.Reason != api.EndCompleted || !end.Saved {
			t.Fatalf("rank %d ended %+v", rank, end)
		}
	}
	if saves := told(b.server, savedIn); len(saves) > 0 {
		t.Errorf("rank 1 says that it has published %+v", saves)
	}
	if saves := told(a.server, savedIn); len(saves) != 1 || saves[0].Step != 7 || saves[0].Bytes != 14 {
		t.Errorf("published: %+v", saves)
	}
	c, d := gang.machine(2), gang.machine(3)
	task.Command = "cat $SCRIMP_CHECKPOINT_DIR/part"
	gang.begin(2, task, c, d)
	for rank, m := range []*member{c, d} {
		m.ends()
		if want := "part " + strconv.Itoa(rank) + "\n"; m.log() != want {
			t.Errorf("rank %d got back %q, want %q", rank, m.log(), want)
		}
	}
}

// The rest of a gang ends within the grace, whether its program hangs and ignores signals, saves,
// or has a share that waits for the other ranks' shares. It publishes nothing more. Only then does
// the machine start its part of the next gang.
func TestGang_EndsBeforeNextOneStarts(t *testing.T) {
	t.Parallel()
	const save = "echo 9 > $SCRIMP_CHECKPOINT_DIR/state"
	for name, c := range map[string]struct{ first, onTerm string }{
		"hangs": {"true", ""},
		"saves": {"true", save + "; exit 0"},
		"waits": {"test $SCRIMP_NODE = 1 || { " + save + "; echo saved 9; }", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gang := newGang(t)
			a, b := gang.machine(0), gang.machine(1)
			task := ofGang(t, "")
			task.Checkpoint.AllRanks, task.Progress.Saved = name == "waits", `^saved (?P<step>\d+)`
			task.Args, task.Command = nil, "trap '"+c.onTerm+"' TERM; "+c.first+"; echo runs; while :; do sleep 0.1; done"
			gang.begin(1, task, a, b)
			a.prints("runs")
			b.prints("runs")
			if name == "waits" {
				eventually.True(t, "rank 0's part", func() bool {
					shares, _ := filepath.Glob(filepath.Join(gang.kept, "jobs", "job-1", "shares", "*"))
					return len(shares) == 1
				})
			}
			b.hard() // no notice
			c := gang.machine(2)
			gang.begin(2, ofGang(t, "train", "TEST_STEPS=5"), a, c)
			for rank, m := range []*member{a, c} {
				if end := m.ends(); end.Reason != api.EndCompleted {
					t.Errorf("rank %d of the next gang ended %+v", rank, end)
				}
			}
			if err := a.end(); err != nil {
				t.Errorf("the machine that stayed ended with %v", err)
			}
			if !strings.HasPrefix(a.log(), "begin at 0 ") {
				t.Errorf("a save of the gang that was over is restored: %q", a.log())
			}
			if left, _ := filepath.Glob(filepath.Join(a.config.MachineDir, "tasks", "*", "*")); len(left) > 0 {
				t.Errorf("left of the gang: %v", left)
			}
		})
	}
}

// The server learns of a notice before the program does, so it knows the reason for whatever the
// other ranks' programs then do.
func TestNotice_ReachesServerBeforeProgram(t *testing.T) {
	t.Parallel()
	gang := newGang(t)
	a, b := gang.machine(0), gang.machine(1)
	asked := 0
	gang.noticed = func() { // the server acknowledges nothing while this runs
		asked++
		for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			if text, _ := os.ReadFile(b.logFile); strings.Contains(string(text), "signal") {
				t.Error("the program was signalled first")
				return
			}
		}
	}
	task := ofGang(t, "train")
	task.Attempt = "job-1.1"
	b.logFile = filepath.Join(b.config.MachineDir, "tasks", task.Attempt, "log")
	gang.begin(1, task, a, b)
	a.prints("step=")
	b.prints("step=")
	b.market.notice(2 * time.Minute)
	for rank, m := range []*member{a, b} {
		if end := m.ends(); end.Reason != api.EndDrained || end.Exit != 0 || end.Saved != (rank == 0) {
			t.Errorf("rank %d ended %+v", rank, end)
		}
	}
	if asked != 1 || !strings.Contains(b.log(), "signal terminated") {
		t.Errorf("the server heard %d notices; the program says %q", asked, b.log())
	}
}

// A rank that waits in vain for rank 0 ends when the server orders it to, and its machine runs the next task.
func TestGang_RankWaitsForRankZeroUntilDrained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		orders api.Orders
		want   string
	}{
		"drained":   {api.Orders{Drain: &api.Drain{Why: "test", Grace: time.Minute}}, "ended drained 0 saved=false"},
		"dissolved": {api.Orders{Fenced: true, Drain: &api.Drain{Why: "test", Grace: time.Minute}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gang := newGang(t)
			b := gang.machine(0)
			task := ofGang(t, "train", "TEST_STEPS=5")
			gang.begin(1, task, nil, b)
			b.server.wait("that it has the task", func() bool { return b.server.reports > 0 })
			b.server.order(func() { b.server.orders = c.orders })
			if name == "drained" {
				b.ends() // the agent ends with it and may report nothing more
			} else {
				b.server.wait("that it runs nothing", func() bool {
					return len(b.server.said) > 0 && b.server.reports > 0 && len(b.server.said[len(b.server.said)-1].Running) == 0
				})
			}
			if got := b.server.story(); got != c.want {
				t.Errorf("the rank that waited says %q, want %q", got, c.want)
			}
		})
	}
}

// A program that fails because another rank ended on a notice counts as drained, even if its agent
// learns of the notice only afterwards.
func TestGang_CountsFailureDuringDrainAsDrained(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 2} {
		a := assign(t, "print", "TEST_LINES=1", "TEST_EXIT=1")
		a.Report, a.Nodes = time.Hour, nodes // report only urgent messages
		r := newRig(t, a)
		r.server.drainFrom = 2 // the first report, and the one after the start
		r.start()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		want := map[int]api.EndReason{1: api.EndFailed, 2: api.EndDrained}[nodes]
		if end := told(r.server, endedIn)[0]; end.Reason != want || end.Exit != 1 {
			t.Errorf("%d machines: it ended %+v, want %s", nodes, end, want)
		}
	}
}

// Rank 0's last save counts even if only the agent of another rank knows of the notice: rank 0's
// program learns of it from theirs and fails, or exits.
func TestGang_KeepsLastSaveOfRankZeroBeforeNotice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says, after string
		step        int64
	}{
		"announced, then the collective fails":          {"echo saved 37", "echo Traceback >&2; exit 1", 37},
		"announced and gone":                            {"echo saved 37", "exit 143", 37},
		"nothing announced, in order":                   {"true", "exit 143", 9},
		"a child outlives it, which hears of the drain": {"echo saved 37", "(trap '' TERM; sleep 1)& exit 1", 37},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gang, dir := newGang(t), t.TempDir()
			met, up := filepath.Join(dir, "met"), filepath.Join(dir, "up")
			a, b := gang.machine(0), gang.machine(1)
			task := ofGang(t, "")
			if task.Report = time.Hour; strings.Contains(c.after, "sleep") { // report only urgent messages: rank 0 is not told in time
				task.Report = 400 * time.Millisecond
			}
			task.Progress.Saved = `^saved (?P<step>\d+)`
			if c.says == "true" {
				task.Progress.Saved = ""
			}
			// Rank 0 still acts even if its agent is faster and signals it.
			task.Args, task.Command = nil, "trap 'echo asked > "+met+"; test $SCRIMP_NODE = 0 || exit 143' TERM; "+
				"echo step=9 loss=1; echo $SCRIMP_NODE >> "+up+"; while ! [ -s "+met+" ]; do sleep 0.02; done; test $SCRIMP_NODE = 0 || exit 143; "+
				"echo 37 > $SCRIMP_CHECKPOINT_DIR/state; "+c.says+"; "+c.after
			gang.begin(1, task, a, b)
			eventually.True(t, "both programs", func() bool { both, _ := os.ReadFile(up); return len(both) == 4 })
			b.market.notice(2 * time.Minute)
			for rank, m := range []*member{a, b} {
				if end := m.ends(); end.Reason != api.EndDrained || end.Saved != (rank == 0) {
					t.Errorf("rank %d ended %+v", rank, end)
				}
			}
			if saves := told(a.server, savedIn); len(saves) != 1 || saves[0].Step != c.step {
				t.Errorf("published %+v, want step %d", saves, c.step)
			}
		})
	}
}

// A port in use is not the program's fault, and the agent does not start the program.
func TestGang_RetriesWhenPortIsTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	a := assign(t, "print", "TEST_LINES=1")
	a.Nodes, a.Addresses, a.MasterPort = 2, []string{"127.0.0.1", "127.0.0.1"}, l.Addr().(*net.TCPAddr).Port
	r := newRig(t, a)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if end := told(r.server, endedIn)[0]; end.Reason != api.EndDrained || !strings.Contains(end.Error, "the gang cannot meet") {
		t.Errorf("it ended %+v", end)
	}
	if b, err := os.ReadFile(r.task("log")); err != nil || len(b) > 0 {
		t.Errorf("the program printed %q, %v", b, err)
	}
}

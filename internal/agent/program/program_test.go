package program

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/proc"
)

// plays maps an environment variable to what the test binary does in a process of its own.
var plays = map[string]func() int{}

// TestMain lets the test binary play the agent that the test kills.
func TestMain(m *testing.M) {
	for name, play := range plays {
		if os.Getenv(name) != "" {
			os.Exit(play())
		}
	}
	if os.Getenv("SCRIMP_TEST_REAPER") != "" {
		os.Exit(playReaper())
	}
	if os.Getenv("SCRIMP_TEST_ORPHANS") != "" {
		os.Exit(playOrphans())
	}
	if script := os.Getenv("SCRIMP_TEST_AGENT"); script != "" {
		p, err := Start(Spec{Args: []string{"/bin/sh", "-c", script}, Env: os.Environ(), Output: os.Stdout})
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		<-p.Done()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func start(t *testing.T, script string) (*Program, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	p, err := Start(Spec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Output: f, Mark: "SCRIMP_MARK=" + out})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, out
}

func read(path string) string { b, _ := os.ReadFile(path); return string(b) }

func TestExit_ReportsStatusLikeShell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script string
		want   Exit
	}{
		{"exit 0", Exit{}},
		{"exit 75", Exit{Status: 75}},
		{"kill -KILL $$", Exit{Status: 137, Signaled: true}},
		{"kill -TERM $$", Exit{Status: 143, Signaled: true}},
		{"trap 'exit 143' TERM; kill -TERM $$; sleep 5", Exit{Status: 143}},
	} {
		p, _ := start(t, c.script)
		<-p.Done()
		if p.Exit() != c.want {
			t.Errorf("%q ended with %+v, want %+v", c.script, p.Exit(), c.want)
		}
	}
}

func TestSignal_ReachesWholeGroup(t *testing.T) {
	t.Parallel()
	// The shell has no handler and dies at once; its child saves a moment longer.
	p, out := start(t, `sh -c 'trap "sleep 0.1; echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done' ; true`)
	eventually.True(t, "ready", func() bool { return strings.Contains(read(out), "ready") })
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	eventually.True(t, "the group gone", func() bool { return !p.Alive() })
	if got := read(out); !strings.HasSuffix(got, "saved\n") {
		t.Errorf("output %q: the child was not given its time", got)
	}
}

func TestKill_KillsProcessThatLeftGroup(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: needs Linux")
	}
	p, out := start(t, `setsid sh -c 'echo $$; exec sleep 1000' & wait`)
	eventually.True(t, "the stray's id", func() bool { return strings.HasSuffix(read(out), "\n") })
	stray, err := strconv.Atoi(strings.TrimSpace(read(out)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if len(marked(p.mark)) != 0 || p.Alive() {
		t.Errorf("process %d lives on", stray)
	}
}

func TestProgram_DiesWithItsAgent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: needs Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	// The main process and its child both ignore TERM.
	cmd.Env = append(os.Environ(), `SCRIMP_TEST_AGENT=trap '' TERM; sleep 1000 & echo $$ $!; wait`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	agent := proc.Start(t, cmd)
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pids [2]int
	if _, err := fmt.Sscan(line, &pids[0], &pids[1]); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	// The guard starts just after the program. Wait for it, as if the machine were killed later.
	eventually.True(t, "the guard", func() bool {
		for _, p := range processes() {
			if p.parent == agent.Process.Pid && p.group != pids[0] {
				return true
			}
		}
		return false
	})
	if err := agent.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // it was killed
	for _, pid := range pids {
		eventually.True(t, "the program dead", func() bool {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			p, ok := parseStat(b)
			return err != nil || ok && p.zombie
		})
	}
}

// A program handles signals normally, even if the agent was started with nohup or in the background of a shell.
func TestDefaultSignals_ResetsIgnoredSignals(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"INT", "QUIT", "HUP", "USR1", "ALRM"} {
		agent := exec.Command("/bin/sh", "-c", `trap "" INT QUIT HUP USR1 ALRM; exec "$0"`, self)
		agent.Env = append(os.Environ(), "SCRIMP_TEST_AGENT=kill -"+name+" $$; echo lives")
		out, err := agent.Output()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: the program printed %q after it, %v", name, out, err)
		}
	}
}

func TestMeter_CountsCoresInUse(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: needs Linux")
	}
	p, _ := start(t, `sh -c 'while :; do :; done'; true`)
	m := NewMeter(p.Group(), time.Now())
	var u Usage
	eventually.True(t, "a busy program measured", func() bool {
		got, ok := m.Measure(time.Now())
		u = got
		return ok && u.CPU > 0.05
	})
	if u.Memory == 0 || u.Processes < 1 || u.CPU > 4 {
		t.Errorf("usage %+v", u)
	}
}

func TestParseStat_ReadsStrangeName(t *testing.T) {
	p, ok := parseStat([]byte("7 (a ) (b) S 1 5 5 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 100 1000 3 18446744073709551615 1 1"))
	want := process{pid: 7, parent: 1, group: 5, session: 5, ticks: 100, rss: 3 * int64(os.Getpagesize()), begun: 100,
		name: "a ) (b", own: 30, system: 60, faults: 7, threads: 1}
	if !ok || p != want {
		t.Errorf("%+v %v, want %+v", p, ok, want)
	}
}

func TestParseSignal(t *testing.T) {
	for name, want := range map[string]syscall.Signal{"": syscall.SIGTERM, "usr1": syscall.SIGUSR1, "SIGINT": syscall.SIGINT} {
		if got, err := ParseSignal(name); err != nil || got != want {
			t.Errorf("%q is %v, %v", name, got, err)
		}
	}
	if _, err := ParseSignal("KILL"); err == nil {
		t.Error("KILL was taken: a program cannot save after it")
	}
}

// Meter reads a program's control group if that counts usage, and its processes otherwise.
func TestMeter_ReadsControlGroup(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := readCgroup(dir); ok {
		t.Error("a group that counts nothing is read")
	}
	write("cpu.stat", "usage_usec 1000000\nuser_usec 900000\n")
	write("cgroup.procs", "11\n12\n")
	if _, ok := readCgroup(dir); ok {
		t.Error("a group that does not count memory is read")
	}
	write("memory.current", "5000\n")
	write("memory.stat", "anon 3000\nfile 1500\n")
	write("io.stat", "8:0 rbytes=100 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2\n")
	begin := time.Unix(1000, 0)
	m := &Meter{cgroup: dir, at: begin}
	m.last, _ = readCgroup(dir)
	write("cpu.stat", "usage_usec 9000000\n")
	write("io.stat", "8:0 rbytes=600 wbytes=20\n8:16 rbytes=11 wbytes=4\n")
	u, ok := m.Measure(begin.Add(4 * time.Second))
	if want := (Usage{CPU: 2, Memory: 3500, Read: 510, Written: 2, Processes: 2}); !ok || u != want {
		t.Errorf("%+v %v, want %+v", u, ok, want)
	}
	write("cgroup.procs", "")
	if u, ok := m.Measure(begin.Add(5 * time.Second)); ok {
		t.Errorf("a group without processes uses %+v", u)
	}
}

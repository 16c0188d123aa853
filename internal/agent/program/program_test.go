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

	"scrimp/internal/await"
)

// TestMain lets the test binary play the agent that is killed.
func TestMain(m *testing.M) {
	if os.Getenv("SCRIMP_TEST_REAPER") != "" {
		os.Exit(playReaper())
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
	p, err := Start(Spec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Output: f, Mark: "SCRIMP_MARK=" + out})
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

func TestExitIsReportedAsShellsDo(t *testing.T) {
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

func TestSignalReachesTheWholeGroupAndTheGroupOutlivesItsShell(t *testing.T) {
	// The shell has no handler and dies at once; its child saves for a moment more.
	p, out := start(t, `sh -c 'trap "sleep 0.3; echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done' ; true`)
	await.True(t, "ready", func() bool { return strings.Contains(read(out), "ready") })
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	await.True(t, "the group gone", func() bool { return !p.Alive() })
	if got := read(out); !strings.HasSuffix(got, "saved\n") {
		t.Errorf("output %q: the child was not given its time", got)
	}
}

func TestKillEndsAlsoWhatLeftTheGroup(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil || runtime.GOOS != "linux" {
		t.Skip("skipped: setsid is not installed")
	}
	p, out := start(t, `setsid sh -c 'echo $$; exec sleep 1000' & wait`)
	await.True(t, "the stray's id", func() bool { return strings.HasSuffix(read(out), "\n") })
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

func TestProgramDiesWithItsAgent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: needs Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(self)
	// The main process and a child of it, both deaf to TERM.
	agent.Env = append(os.Environ(), `SCRIMP_TEST_AGENT=trap '' TERM; sleep 1000 & echo $$ $!; wait`)
	agent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pids [2]int
	if _, err := fmt.Sscan(line, &pids[0], &pids[1]); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	// The guard starts just after the program: wait for it, as a machine that is killed later would.
	await.True(t, "the guard", func() bool {
		for _, p := range processes() {
			if p.parent == agent.Process.Pid && p.group != pids[0] {
				return true
			}
		}
		return false
	})
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // killed
	for _, pid := range pids {
		await.True(t, "the program dead", func() bool {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			p, ok := parseStat(b)
			return err != nil || ok && p.zombie
		})
	}
}

func TestUsageCountsTheCoresInUse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: needs Linux")
	}
	p, _ := start(t, `sh -c 'while :; do :; done'; true`)
	m := NewMeter(p.Group(), time.Now())
	var u Usage
	await.True(t, "a busy program measured", func() bool {
		got, ok := m.Measure(time.Now())
		u = got
		return ok && u.CPU > 0.05
	})
	if u.Memory == 0 || u.Processes < 1 || u.CPU > 4 {
		t.Errorf("usage %+v", u)
	}
}

func TestStatOfAStrangeName(t *testing.T) {
	p, ok := parseStat([]byte("7 (a ) (b) S 1 5 5 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 100 1000 3 18446744073709551615 1 1"))
	want := process{pid: 7, parent: 1, group: 5, session: 5, ticks: 100, rss: 3 * int64(os.Getpagesize()), begun: 100}
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

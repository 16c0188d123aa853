package program

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/proc"
)

// daemonize leaves a daemon the usual way: two intermediate processes exit, each in its own
// session, and nothing of the environment is left. Only its arguments identify it. The program has
// ended when the daemon runs.
const daemonize = `env -i setsid sh -c 'env -i setsid sh -c "env -i setsid sleep %s & exit 0" & exit 0'
until grep -qsz '^%s$' /proc/[0-9]*/cmdline; do sleep 0.01; done`

// living returns the processes with that argument.
func living(argument string) (pids []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		b, _ := os.ReadFile(name)
		if bytes.Contains(b, []byte("sleep\x00"+argument+"\x00")) {
			pids = append(pids, name)
		}
	}
	return pids
}

// needCgroup skips the test if this process may not make control groups; otherwise it returns the
// group in which it may.
func needCgroup(t *testing.T) (at string) {
	t.Helper()
	at, ok := ownGroup()
	dir, err := os.MkdirTemp(at, "scrimp-probe-")
	if !ok || err != nil {
		t.Skipf("the right to make a control group is not installed: %v", err)
	}
	defer func() { _ = os.Remove(dir) }()
	if _, err := os.Stat(filepath.Join(dir, killFile)); err != nil {
		t.Skipf("this kernel's control groups have no word that ends them: %v", err)
	}
	return at
}

// Process ids repeat: newCgroup sweeps the group of a killed agent, which must not block it.
func TestNewCgroup_IgnoresGroupOfKilledAgent(t *testing.T) {
	lane.Component(t, "host")
	at := needCgroup(t)
	over := exec.Command("/bin/true")
	if err := over.Run(); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(at, fmt.Sprintf("scrimp-%d-1", over.Process.Pid))
	mine := filepath.Join(at, fmt.Sprintf("scrimp-%d-1", os.Getpid()))
	for _, dir := range []string{left, mine} {
		if err := os.Mkdir(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
	}
	c := newCgroup()
	if c == nil {
		t.Fatal("no group is made where one of the same process id is left")
	}
	defer c.remove()
	if _, err := os.Stat(left); err == nil {
		t.Errorf("%s is left", left)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("a group of a process that lives is removed: %v", err)
	}
}

// A daemon that a program leaves stays in its control group and is killed with it.
func TestKill_KillsDaemonInControlGroup(t *testing.T) {
	lane.Component(t, "host")
	needCgroup(t)
	const mark = "98765.4321"
	p, _ := start(t, fmt.Sprintf(daemonize, mark, mark))
	<-p.Done()
	if len(living(mark)) != 1 {
		t.Fatalf("%v live before the program is closed", living(mark))
	}
	dir := p.cgroup.path()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if left := living(mark); len(left) > 0 {
		t.Errorf("%v live on", left)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("the control group %s is left", dir)
	}
}

// The daemon ends with its agent too, even if that is killed.
func TestGuard_KillsDaemonOfKilledAgent(t *testing.T) {
	lane.Component(t, "host")
	needCgroup(t)
	const mark = "98765.4322"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "SCRIMP_TEST_AGENT="+fmt.Sprintf(daemonize, mark, mark)+"; sleep 1000")
	agent := proc.Start(t, cmd)
	eventually.True(t, "the daemon runs", func() bool { return len(living(mark)) == 1 })
	if err := agent.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // it was killed
	eventually.True(t, "the daemon has ended", func() bool { return len(living(mark)) == 0 })
}

// playOrphans is an agent that adopts orphans and may make no control group. It runs a program that
// leaves a daemon, beside another program that must not end, and prints the number of daemons
// before and after.
func playOrphans() int {
	groupOf = func() (string, bool) { return "", false }
	const mark = "98765.4323"
	if err := Adopt(); err != nil {
		fmt.Println(err)
		return 1
	}
	other, err := Start(Spec{Args: []string{"/bin/sleep", "1000"}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	p, err := Start(Spec{Args: []string{"/bin/sh", "-c", fmt.Sprintf(daemonize, mark, mark)}, Env: os.Environ()})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	<-p.Done()
	if err := p.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	before := len(living(mark))
	err = KillOrphans()
	fmt.Printf("%d before, %v, %d after, the other runs: %t\n", before, err, len(living(mark)), other.Alive())
	_ = other.Close()
	return 0
}

// Without a control group the agent adopts the daemon, and kills it with its descendants.
func TestKillOrphans_KillsAdoptedDaemon(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "SCRIMP_TEST_ORPHANS=1")
	cmd.WaitDelay = 10 * time.Second // a stray would hold the pipe
	out, err := cmd.Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != "1 before, <nil>, 0 after, the other runs: true" {
		t.Errorf("%q, %v", got, err)
	}
}

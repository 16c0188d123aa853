// Package sshtest makes machines with a real sshd: network namespaces of this host.
package sshtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"
)

// Machines are m1 to mN of an ssh configuration.
type Machines struct {
	Config string // file for ssh -F
	dir    string
	n, net int
	lock   *os.File // on the net, while we hold it
}

// Start makes n machines with addresses 10.NET.K.2, until the test ends. NET is the given number, or a higher one if
// others use that. It skips the test if something is not installed.
func Start(t testing.TB, n, net int) *Machines {
	t.Helper()
	if why := missing(); why != "" {
		t.Skip(why)
	}
	m, err := start(n, net)
	if err != nil {
		t.Fatalf("machines that are reached by ssh: %v", err)
	}
	t.Cleanup(m.Stop)
	return m
}

// missing returns what machines need but is not installed; "": nothing.
func missing() string {
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		return "network namespaces need root on Linux: here they are not installed"
	}
	for _, name := range []string{"ssh", "ip", "ssh-keygen"} {
		if _, err := exec.LookPath(name); err != nil {
			return name + " is not installed: apt-get install openssh-client iproute2"
		}
	}
	if _, err := os.Stat("/usr/sbin/sshd"); err != nil {
		return "sshd is not installed: apt-get install openssh-server"
	}
	return ""
}

func start(n, net int) (*Machines, error) {
	dir, err := os.MkdirTemp("", "scrimp-ssh-")
	if err != nil {
		return nil, err
	}
	m := &Machines{Config: filepath.Join(dir, "config"), dir: dir, n: n, net: net}
	for ; !m.take(); m.net += apart {
		if m.net > 255-apart {
			_ = os.RemoveAll(dir)
			return nil, errors.New("no net is free")
		}
	}
	_, _ = m.script("ssh-down.sh") // left by a killed test
	if out, err := m.script("ssh-up.sh"); err != nil {
		m.Stop()
		return nil, fmt.Errorf("ssh-up.sh: %w: %s", err, out)
	}
	return m, nil
}

// apart is the distance from a net in use to the next one to try: those in between belong to other tests.
const apart = 10

// take locks the net unless another process has it, by a lock or by running machines.
func (m *Machines) take() bool {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("scrimp-ssh-net-%d.lock", m.net)),
		os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false
	}
	free := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	for k := 1; k <= 9 && free; k++ {
		pids, err := exec.Command("ip", "netns", "pids", m.space(k)).Output()
		free = err != nil || len(pids) == 0 // leftovers of a killed test run nothing
	}
	if !free {
		_ = f.Close()
		return false
	}
	m.lock = f
	return true
}

func (m *Machines) script(name string) (string, error) {
	path := filepath.Join(testbin.Root(), "test", name)
	out, err := exec.Command(path, m.dir, strconv.Itoa(m.n), strconv.Itoa(m.net)).CombinedOutput()
	return string(out), err
}

// Stop stops all machines and their processes.
func (m *Machines) Stop() {
	_, _ = m.script("ssh-down.sh")
	_ = os.RemoveAll(m.dir)
	_ = m.lock.Close()
}

// Address returns the address of a machine.
func (m *Machines) Address(k int) string { return fmt.Sprintf("10.%d.%d.2", m.net, k) }

// Cut disconnects a machine's network, Restore reconnects it.
func (m *Machines) Cut(t testing.TB, k int) { m.link(t, k, "down") }

// Restore reconnects a machine's network.
func (m *Machines) Restore(t testing.TB, k int) { m.link(t, k, "up") }

func (m *Machines) link(t testing.TB, k int, state string) {
	t.Helper()
	if out, err := exec.Command("ip", "link", "set", fmt.Sprintf("v%d-%d", m.net, k), state).CombinedOutput(); err != nil {
		t.Fatalf("cable of machine %d %s: %v: %s", k, state, err, out)
	}
}

// Pids returns the processes of a machine.
func (m *Machines) Pids(t testing.TB, k int) (list []int) {
	t.Helper()
	out, err := exec.Command("ip", "netns", "pids", m.space(k)).Output()
	must.Do(t, err)
	for _, f := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(f)
		must.Do(t, err)
		list = append(list, pid)
	}
	return list
}

func (m *Machines) space(k int) string { return fmt.Sprintf("s%d-%d", m.net, k) }

// Off kills every process of a machine, as a power failure does; On starts its sshd again. When Off returns, no
// process of the machine holds a port any more.
func (m *Machines) Off(t testing.TB, k int) {
	t.Helper()
	var left []int
	eventually.True(t, "every process of the machine has ended", func() bool {
		left = m.Pids(t, k)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(left) == 0
	}, func() string { return fmt.Sprint("processes ", left) })
}

// EndSSHD kills the sshd process that accepts connections. Established ones continue.
func (m *Machines) EndSSHD(t testing.TB, k int) {
	t.Helper()
	text, err := os.ReadFile(m.pidFile(k))
	must.Do(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must.Do(t, err)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// On starts a machine's sshd.
func (m *Machines) On(t testing.TB, k int) {
	t.Helper()
	m.begin(t, k, "")
}

// Reboot kills every process of a machine and starts it with another boot ID.
func (m *Machines) Reboot(t testing.TB, k int) {
	t.Helper()
	m.Off(t, k)
	stat, err := os.ReadFile("/proc/stat")
	must.Do(t, err)
	now := time.Now()
	for name, text := range map[string]string{
		"boot_id": fmt.Sprintf("%08x-0000-4000-8000-%012x\n", k, now.UnixNano()&(1<<48-1)),
		"stat":    booted.ReplaceAllString(string(stat), fmt.Sprintf("btime %d", now.Unix())),
	} {
		must.Do(t, os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600))
	}
	m.begin(t, k, fmt.Sprintf("mount --bind %[1]s/boot_id /proc/sys/kernel/random/boot_id && "+
		"mount --bind %[1]s/stat /proc/stat && ", m.dir))
}

var booted = regexp.MustCompile(`(?m)^btime \d+$`)

// Small kills every process of a machine and starts it with a disk of the given size at a folder.
func (m *Machines) Small(t testing.TB, k int, folder, size string) {
	t.Helper()
	m.Off(t, k)
	m.begin(t, k, fmt.Sprintf("mkdir -p %[1]s && mount -t tmpfs -o mode=755,size=%[2]s tmpfs %[1]s && ", folder, size))
}

// Run runs a command on a machine, over ssh.
func (m *Machines) Run(t testing.TB, k int, command string) (string, error) {
	t.Helper()
	out, err := exec.Command("ssh", "-F", m.Config, "-o", "BatchMode=yes", fmt.Sprintf("m%d", k), command).CombinedOutput()
	return string(out), err
}

// begin starts sshd on a machine, in a mount namespace that the script before changes.
func (m *Machines) begin(t testing.TB, k int, before string) {
	t.Helper()
	conf, log := filepath.Join(m.dir, fmt.Sprintf("sshd%d.conf", k)), filepath.Join(m.dir, fmt.Sprintf("sshd%d.log", k))
	_ = os.Remove(m.pidFile(k))
	// A process killed a moment ago may still hold the port; then sshd exits in the background.
	script := fmt.Sprintf("%sfor try in $(seq 180); do /usr/sbin/sshd -f %s -E %[3]s || break; "+
		"for look in $(seq 50); do [ -s %[4]s ] && exit; sleep 0.02; done; done; tail -n 3 %[3]s; exit 1",
		before, conf, log, m.pidFile(k))
	if out, err := exec.Command("ip", "netns", "exec", m.space(k), "/bin/sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("sshd of machine %d: %v: %s", k, err, out)
	}
}

func (m *Machines) pidFile(k int) string { return filepath.Join(m.dir, fmt.Sprintf("sshd%d.pid", k)) }

// Revoke removes the key of the machines; Allow restores it.
func (m *Machines) Revoke(t testing.TB) { m.authorized(t, "") }

// Allow restores the key.
func (m *Machines) Allow(t testing.TB) {
	key, err := os.ReadFile(filepath.Join(m.dir, "key.pub"))
	must.Do(t, err)
	m.authorized(t, string(key))
}

func (m *Machines) authorized(t testing.TB, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(m.dir, "authorized"), []byte(text), 0o600))
}

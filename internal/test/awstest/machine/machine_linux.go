package machine

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Machine is the processes of an instance: a tree in namespaces of its own, with its metadata service.
type Machine struct {
	h    *Host
	g    Guest
	dir  string
	ns   string
	link string
	stop context.CancelFunc
	ctx  context.Context
	done chan struct{}
	kick chan struct{} // a notice is due

	signature string // of its identity document; used by its own goroutine only

	mu      sync.Mutex
	level   int // of the notice: 1 rebalance recommendation, 2 interruption
	end     time.Time
	soft    bool // processes get SIGTERM first
	console []byte
}

// grace is how long processes have after SIGTERM, as in systemd's shutdown (shortened from 90 s).
const grace = 3 * time.Second

// shutdownStatus is the first process's exit status after a shutdown from within the system.
const shutdownStatus = 86

// Boot starts the machine of a guest.
func (h *Host) Boot(g Guest) *Machine {
	m := &Machine{h: h, g: g, dir: filepath.Join(h.o.Dir, g.ID), ns: h.prefix + g.ID[2:10],
		link: "e" + digest(h.prefix + g.ID)[:10], done: make(chan struct{}), kick: make(chan struct{}, 1)}
	m.ctx, m.stop = context.WithCancel(context.Background())
	h.machines.Go(func() {
		defer close(m.done)
		m.run()
	})
	return m
}

// Warn makes the metadata service announce an interruption at end: level 1 is a rebalance recommendation, 2 a notice.
func (m *Machine) Warn(level int, end time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if level <= m.level {
		return
	}
	m.level, m.end = level, end
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// Stop ends the machine's processes. With soft they get SIGTERM first.
func (m *Machine) Stop(soft bool) {
	m.mu.Lock()
	m.soft = soft
	m.mu.Unlock()
	m.stop()
}

// Over reports whether none of the machine's processes runs.
func (m *Machine) Over() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

func (m *Machine) say(format string, args ...any) {
	_, _ = m.Write(fmt.Appendf(nil, format+"\n", args...)) // never fails
}

// Write appends to the console, which keeps the last 64 KiB, as EC2 does.
func (m *Machine) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.console = append(m.console, b...)
	if over := len(m.console) - 64<<10; over > 0 {
		m.console = bytes.Clone(m.console[over:])
	}
	return len(b), nil
}

// Output returns the end of the console.
func (m *Machine) Output() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.console)
}

func (m *Machine) run() {
	select {
	case <-time.After(m.h.o.Boot):
	case <-m.ctx.Done():
		return
	}
	defer m.clean()
	if err := m.begin(); err != nil {
		m.say("awstest: the machine did not start: %v", err)
		_ = m.h.o.Kill(m.g.ID) // it may be terminated already
	}
}

// begin creates the machine and waits for its end.
func (m *Machine) begin() error {
	if err := m.folders(); err != nil {
		return err
	}
	if err := m.network(); err != nil {
		return err
	}
	imds, err := m.imds()
	if err != nil {
		return err
	}
	defer func() { halt(imds) }()
	cmd := exec.Command("ip", "netns", "exec", m.ns, "unshare", "--pid", "--fork", "--kill-child=KILL", "--mount", "--uts",
		"--ipc", "/bin/sh", "-c", initScript)
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.dir, m, m
	cmd.Env = []string{"PATH=/run/ec2/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case <-m.kick:
			halt(imds)
			if imds, err = m.imds(); err != nil {
				m.say("awstest: metadata service: %v", err)
			}
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() == shutdownStatus {
				_ = m.h.o.Shutdown(m.g.ID) // it may be terminated already
				return nil
			}
			return fmt.Errorf("the first process ended: %s", outcome(err))
		case <-m.ctx.Done():
			m.mu.Lock()
			soft := m.soft
			m.mu.Unlock()
			if soft {
				m.signal(cmd.Process.Pid)
				select {
				case <-ended:
					return nil
				case <-time.After(grace):
				}
			}
			_ = cmd.Process.Kill() // its child, the first process, dies with it, and all others with that
			<-ended
			return nil
		}
	}
}

// outcome describes how a process ended.
func outcome(err error) string {
	if err == nil {
		return "status 0"
	}
	return err.Error()
}

// initScript is the first process of a machine. It binds the folders of the instance over those of this host, runs
// the user data and waits. USR1 is a shutdown from outside, TERM one from within.
const initScript = `
set -e
mount --make-rprivate /
mount -t proc proc /proc
for f in opt var/lib root run tmp; do mount --bind ./$f /$f; done
mount -t tmpfs tmpfs /dev/shm
hostname "$(cat /run/ec2/hostname)"
cd /
set +e
trap 'kill -TERM -1; exit 86' TERM
trap 'kill -TERM -1; n=0; while set -- /proc/[0-9]*; [ $# -gt 1 ] && [ $n -lt 40 ]; do n=$((n+1)); ` +
	`/bin/sleep 0.05; done; exit 0' USR1
if [ -x /var/lib/cloud/instance/scripts/part-001 ]; then
	( trap - TERM USR1; /var/lib/cloud/instance/scripts/part-001; echo "cloud-init: user data ended with status " +
		"$?" ) </dev/null &
fi
while :; do /bin/sleep 3600 </dev/null >/dev/null 2>&1 & wait $!; done
`

// signal tells the first process to shut down.
func (m *Machine) signal(parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		return // it has ended
	}
	for _, f := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(f); err == nil {
			_ = syscall.Kill(pid, syscall.SIGUSR1) // it may have ended
		}
	}
}

func (m *Machine) folders() error {
	for _, f := range []string{"opt", "var/lib/cloud/instance/scripts", "root", "run/ec2/bin", "tmp"} {
		if err := os.MkdirAll(filepath.Join(m.dir, f), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(m.dir, "tmp"), 0o1777|os.ModeSticky); err != nil {
		return err
	}
	files := map[string]string{"run/ec2/hostname": "ip-" + strings.ReplaceAll(m.g.Address.String(), ".", "-")}
	for _, name := range []string{"shutdown", "poweroff", "halt"} {
		files["run/ec2/bin/"+name] = "#!/bin/sh\nkill -TERM 1\n"
	}
	if script := m.userData(); script != "" {
		files["var/lib/cloud/instance/scripts/part-001"] = script
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// userData returns the script to run; "": none.
func (m *Machine) userData() string {
	raw, err := base64.StdEncoding.DecodeString(m.g.UserData)
	if err != nil || len(raw) == 0 {
		return ""
	}
	if z, err := gzip.NewReader(bytes.NewReader(raw)); err == nil { // cloud-init unpacks it, too
		if raw, err = io.ReadAll(z); err != nil {
			m.say("cloud-init: user data: %v", err)
			return ""
		}
	}
	if !bytes.HasPrefix(raw, []byte("#!")) {
		m.say("cloud-init: Unhandled non-multipart (text/x-not-multipart) userdata: only scripts that begin with #! run here")
		return ""
	}
	return string(raw)
}

func (m *Machine) network() error {
	host := m.g.Address.Prev().String()
	for _, args := range []string{
		"netns add " + m.ns,
		"link add " + m.link + " type veth peer name eth0 netns " + m.ns,
		"addr add " + host + "/30 dev " + m.link,
		"link set " + m.link + " up",
		"-n " + m.ns + " addr add " + m.g.Address.String() + "/30 dev eth0",
		"-n " + m.ns + " link set eth0 up",
		"-n " + m.ns + " link set lo up",
		"-n " + m.ns + " addr add 169.254.169.254/32 dev lo",
		"-n " + m.ns + " route add default via " + host,
	} {
		if err := ip(args); err != nil {
			return err
		}
	}
	return nil
}

func ip(args string) error {
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, bytes.TrimSpace(out))
	}
	return nil
}

// clean removes everything of the machine.
func (m *Machine) clean() {
	endSpace(m.ns)
	_ = ip("link del " + m.link) // it goes with the namespace, but later
	_ = os.RemoveAll(m.dir)
}

// endSpace kills the processes in a namespace and removes it.
func endSpace(ns string) {
	for range 3 { // for processes that fork meanwhile
		out, _ := exec.Command("ip", "netns", "pids", ns).Output()
		for _, f := range strings.Fields(string(out)) {
			if pid, err := strconv.Atoi(f); err == nil && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	_ = ip("netns del " + ns)
}

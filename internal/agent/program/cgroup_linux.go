package program

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroup is a control group (cgroup v2) for one program. Every process that the program starts stays
// in it, whatever it does to its session, process group and environment, and one write kills all of
// them.
type cgroup struct {
	dir string
	fd  *os.File // the folder, which the kernel needs to start the first process in it
}

// groupOf is ownGroup; tests replace it to imitate a system without control groups.
var groupOf = ownGroup

// newCgroup makes a control group below that of this process. It returns nil if this process may not,
// as in most pods.
func newCgroup() *cgroup {
	at, ok := groupOf()
	if !ok {
		return nil
	}
	sweep(at)
	// A killed agent leaves its group, and process ids repeat, so the name needs a random part.
	dir, err := os.MkdirTemp(at, fmt.Sprintf("%s%d-", cgroupPrefix, os.Getpid()))
	if err != nil {
		return nil
	}
	fd, err := os.Open(dir)
	if _, no := os.Stat(filepath.Join(dir, killFile)); err != nil || no != nil { // kernels before 5.14 have no kill file
		_ = os.Remove(dir)
		return nil
	}
	return &cgroup{dir, fd}
}

const (
	killFile     = "cgroup.kill"
	cgroupPrefix = "scrimp-"
)

// sweep removes the groups of killed agents. The kernel removes a group only if it is empty. sweep
// skips the groups of running agents, which may be new and still empty.
func sweep(at string) {
	left, err := filepath.Glob(filepath.Join(at, cgroupPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), cgroupPrefix), "-")
		if n, err := strconv.Atoi(pid); err != nil || n <= 0 || !errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			continue
		}
		_ = os.Remove(dir) // it is not empty, or another agent removed it first
	}
}

// ownGroup returns the folder of this process' control group.
func ownGroup() (dir string, ok bool) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false
	}
	path := ""
	for line := range strings.Lines(string(own)) {
		if p, v2 := strings.CutPrefix(strings.TrimSpace(line), "0::"); v2 {
			path = p
		}
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil || path == "" {
		return "", false
	}
	defer func() { _ = f.Close() }()
	for in := bufio.NewScanner(f); in.Scan(); {
		mount, kind, _ := strings.Cut(in.Text(), " - ")
		if fields := strings.Fields(mount); strings.HasPrefix(kind, "cgroup2 ") && len(fields) > 4 {
			return filepath.Join(fields[4], path), true
		}
	}
	return "", false
}

// kill kills all processes in the group and waits until it is empty.
func (c *cgroup) kill() error {
	if c == nil {
		return nil
	}
	err := os.WriteFile(filepath.Join(c.dir, killFile), []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) { // it was empty and is already removed
		return nil
	}
	if err != nil {
		return fmt.Errorf("end the control group of the program: %w", err)
	}
	for deadline := time.Now().Add(killPatience); ; time.Sleep(time.Millisecond) {
		events, err := os.ReadFile(filepath.Join(c.dir, "cgroup.events"))
		switch {
		case err != nil:
			return fmt.Errorf("end the control group of the program: %w", err)
		case strings.Contains(string(events), "populated 0"):
			return nil
		case time.Now().After(deadline):
			return errors.New("end the control group of the program: some of its processes still run")
		}
	}
}

// members returns the processes in the group.
func (c *cgroup) members() []int {
	if c == nil {
		return nil
	}
	list, err := os.ReadFile(filepath.Join(c.dir, "cgroup.procs"))
	if err != nil {
		return nil // it is already removed
	}
	var pids []int
	for _, word := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// remove removes the group if it is empty.
func (c *cgroup) remove() {
	if c == nil {
		return
	}
	_ = c.fd.Close()
	_ = os.Remove(c.dir) // a group that stays is empty: a later agent sweeps it
}

// path returns the group's folder, or "".
func (c *cgroup) path() string {
	if c == nil {
		return ""
	}
	return c.dir
}

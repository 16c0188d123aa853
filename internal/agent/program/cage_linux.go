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

// cage is a control group (cgroup v2) of the program alone: a process that it starts is in it, whatever it does to
// its session, its group and its environment, and all of them end at one word.
type cage struct {
	dir string
	fd  *os.File // the folder, for the kernel to start the first process in
}

// groupOf is ownGroup, but for tests of a system without.
var groupOf = ownGroup

// newCage makes one below the group of this process; nil where this process may not, as in most pods.
func newCage() *cage {
	at, ok := groupOf()
	if !ok {
		return nil
	}
	sweep(at)
	// An agent that was killed leaves its group, and its process id comes again: the name is one that nothing has.
	dir, err := os.MkdirTemp(at, fmt.Sprintf("%s%d-", cagePrefix, os.Getpid()))
	if err != nil {
		return nil
	}
	fd, err := os.Open(dir)
	if _, no := os.Stat(filepath.Join(dir, killFile)); err != nil || no != nil { // kernels before 5.14 have no such word
		_ = os.Remove(dir)
		return nil
	}
	return &cage{dir, fd}
}

const (
	killFile   = "cgroup.kill"
	cagePrefix = "scrimp-"
)

// sweep removes the groups of agents that were killed. The kernel removes only a group that is empty, and a group
// whose agent runs stays, so that one that is just made is left alone.
func sweep(at string) {
	left, err := filepath.Glob(filepath.Join(at, cagePrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), cagePrefix), "-")
		if n, err := strconv.Atoi(pid); err != nil || n <= 0 || !errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			continue
		}
		_ = os.Remove(dir) // it is not empty, or another agent was first
	}
}

// ownGroup is the folder of this process' control group.
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

// kill ends all that is in it, and waits until nothing is.
func (c *cage) kill() error {
	if c == nil {
		return nil
	}
	err := os.WriteFile(filepath.Join(c.dir, killFile), []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) { // it was empty, and is gone
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
			return errors.New("end the control group of the program: processes of it are still there")
		}
	}
}

// members are the processes that are in it.
func (c *cage) members() []int {
	if c == nil {
		return nil
	}
	list, err := os.ReadFile(filepath.Join(c.dir, "cgroup.procs"))
	if err != nil {
		return nil // it is gone
	}
	var pids []int
	for _, word := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// remove removes it once it is empty.
func (c *cage) remove() {
	if c == nil {
		return
	}
	_ = c.fd.Close()
	_ = os.Remove(c.dir) // one that is left is empty: a later agent sweeps it
}

// path is its folder, "" for none.
func (c *cage) path() string {
	if c == nil {
		return ""
	}
	return c.dir
}

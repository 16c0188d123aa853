package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// BoundUsers limits each task's user to half of the processes and threads that the machine allows,
// so that a fork bomb leaves enough for the agent and other tasks. Processes that this process
// starts inherit the limit, and the kernel counts it per user. It does not apply to root.
func BoundUsers() error {
	most := uint64(1 << 22)
	for _, path := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max", ownGroupFile("pids.max")} {
		text, err := os.ReadFile(path)
		if n, bad := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n > 0 {
			most = min(most, n)
		}
	}
	return boundUsers(most / 2)
}

func boundUsers(most uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return fmt.Errorf("limit the processes of tasks: %w", err)
	}
	now.Cur, now.Max = min(now.Cur, most), min(now.Max, most) // a process may raise Cur up to Max
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return fmt.Errorf("limit the processes of tasks: %w", err)
	}
	return nil
}

// ownGroupFile returns the path of a file of this process' control group, or "" without one.
func ownGroupFile(name string) string {
	dir, ok := groupOf()
	if !ok {
		return ""
	}
	return filepath.Join(dir, name)
}

// preferOOMKill makes the kernel kill a program and its children before the agent and other tasks when
// memory runs out.
func preferOOMKill(pid int) error {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0)
	if errors.Is(err, os.ErrNotExist) { // it has ended
		return nil
	}
	return err
}

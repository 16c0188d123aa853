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

// BoundUsers lets each user of a task have half of the processes and threads that the machine has room for: one
// that forks without end leaves the agent and the tasks beside it enough to go on. Root is not bound by it; what this
// process starts inherits it, and counts by its own user.
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
		return fmt.Errorf("bound the processes of tasks: %w", err)
	}
	now.Cur, now.Max = min(now.Cur, most), min(now.Max, most) // it could raise its own up to Max
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return fmt.Errorf("bound the processes of tasks: %w", err)
	}
	return nil
}

// ownGroupFile is a file of this process' control group; "" where it has none.
func ownGroupFile(name string) string {
	dir, ok := groupOf()
	if !ok {
		return ""
	}
	return filepath.Join(dir, name)
}

// goesFirst has the kernel end a program, and what it starts, before the agent and other tasks' where memory runs out.
func goesFirst(pid int) error {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0)
	if errors.Is(err, os.ErrNotExist) { // it has ended
		return nil
	}
	return err
}

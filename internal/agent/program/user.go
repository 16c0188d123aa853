package program

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// As returns credentials of a user, who needs no entry in the password file, with a group of the
// same number and no other. It returns nil for 0, the agent's own user.
func As(user int) *syscall.Credential {
	if user <= 0 {
		return nil
	}
	id := uint32(user) // users are drawn below 2^31
	return &syscall.Credential{Uid: id, Gid: id, Groups: []uint32{}}
}

// Runs reports whether a user has processes on this host.
func Runs(user int) bool { return len(processesOf(user)) > 0 }

// processesOf returns the living processes of a user, including those that run a set-user-ID program.
func processesOf(user int) (list []int) {
	for _, p := range processes() {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
		if p.zombie || err != nil { // it has ended
			continue
		}
		_, rest, _ := strings.Cut(string(status), "\nUid:")
		ids, _, _ := strings.Cut(rest, "\n")
		if slices.Contains(strings.Fields(ids), strconv.Itoa(user)) {
			list = append(list, p.pid)
		}
	}
	return list
}

// KillUser kills every process of a task's own user and waits until none is left, including those
// that left group, session and environment behind. It first stops them until a check finds none
// that runs, so that a fork bomb cannot continue in its children. It checks twice at the end,
// because a process that forks and exits during a check could be missed.
func KillUser(user int) error {
	if user <= 0 || user == os.Getuid() {
		return errors.New("end the processes of a user: the user does not belong to a task")
	}
	deadline := time.Now().Add(killPatience)
	halted := map[int]bool{}
	for more := true; more && time.Now().Before(deadline); {
		more = false
		for _, pid := range processesOf(user) {
			if !halted[pid] {
				halted[pid], more = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended already
			}
		}
	}
	for none := 0; ; time.Sleep(5 * time.Millisecond) {
		left := processesOf(user)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // as above
		}
		if len(left) > 0 {
			none = 0
		} else if none++; none == 2 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("end the processes of user %d: %d still run after %v", user, len(left), killPatience)
		}
	}
}

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

// As is a user that needs no entry anywhere, with a group of the same number and no other;
// nil for 0, which is ours.
func As(user int) *syscall.Credential {
	if user <= 0 {
		return nil
	}
	id := uint32(user) // users are drawn below 2^31
	return &syscall.Credential{Uid: id, Gid: id, Groups: []uint32{}}
}

// Runs reports whether a user has processes here.
func Runs(user int) bool { return len(of(user)) > 0 }

// of are the living processes that a user has, or has started through a program which runs
// as its own owner.
func of(user int) (list []int) {
	for _, p := range processes() {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
		if p.zombie || err != nil { // it ended
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

// KillUser ends every process of a user that is a task's alone, and waits until none is
// left: those too that left group, session and environment behind. It halts them first, until a look finds none that
// runs, so that one which forks without end cannot go on in children; and it looks twice, since one
// that forks and ends while it looks could be missed.
func KillUser(user int) error {
	if user <= 0 || user == os.Getuid() {
		return errors.New("end the processes of a user: it is no task's own")
	}
	deadline := time.Now().Add(killPatience)
	halted := map[int]bool{}
	for more := true; more && time.Now().Before(deadline); {
		more = false
		for _, pid := range of(user) {
			if !halted[pid] {
				halted[pid], more = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP) // gone already, most likely
			}
		}
	}
	for none := 0; ; time.Sleep(5 * time.Millisecond) {
		left := of(user)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // likewise
		}
		if len(left) > 0 {
			none = 0
		} else if none++; none == 2 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("end the processes of user %d: %d are still there after %v", user, len(left), killPatience)
		}
	}
}

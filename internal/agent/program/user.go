package program

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// As is a user that needs no entry anywhere, with a group of the same number and no other;
// nil for 0, which is ours.
func As(user int) *syscall.Credential {
	if user <= 0 {
		return nil
	}
	id := uint32(user) //nolint:gosec // users are drawn below 2^31
	return &syscall.Credential{Uid: id, Gid: id, Groups: []uint32{}}
}

// KillUser ends every process of a user that is a task's alone, and waits until none is
// left: those too that left group, session and environment behind.
func KillUser(user int) error {
	if user <= 0 || user == os.Getuid() {
		return errors.New("end the processes of a user: it is no task's own")
	}
	for deadline := time.Now().Add(killPatience); ; time.Sleep(5 * time.Millisecond) {
		left := 0
		for _, p := range processes() {
			var st syscall.Stat_t
			if p.zombie || syscall.Stat("/proc/"+strconv.Itoa(p.pid), &st) != nil || int(st.Uid) != user {
				continue
			}
			left++
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // gone already, most likely
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("end the processes of user %d: %d are still there after %v", user, left, killPatience)
		}
	}
}

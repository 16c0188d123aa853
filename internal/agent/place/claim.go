// Package place is what a task has on its machine: its folders, the slot and the user that are its own, and the
// environment of its program.
package place

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"scrimp/internal/agent/program"
	"scrimp/internal/lib/durable"
)

// Whose the processes of a task are (SCRIMP_TASK_USER).
const (
	UserAuto = "auto" // a user of each task's own, where the agent is root and others reach the machine's folder
	UserSame = "same" // the agent's
)

// Users of tasks are of a range that no system gives to people, services or containers.
const (
	firstUser = 480_000
	users     = 40_000
)

// ClaimUser returns the user of an attempt: the same after a restart of the agent, and
// nobody who has another task of this machine or a process on this host. tasks holds what is
// the agent's of each task.
func ClaimUser(tasks, attempt string) (int, error) {
	claims, err := filepath.Glob(filepath.Join(tasks, "*", "user"))
	if err != nil {
		return 0, err
	}
	mine, taken := filepath.Join(tasks, attempt, "user"), map[int]bool{}
	for _, path := range claims {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		user, err := strconv.Atoi(string(text))
		if err != nil || user < firstUser || user >= firstUser+users {
			return 0, fmt.Errorf("read the user of a task: %s holds %q", path, text)
		}
		if path == mine {
			return user, nil
		}
		taken[user] = true
	}
	for range 1000 {
		user := firstUser + rand.IntN(users)
		if !taken[user] && !program.Runs(user) {
			return user, durable.Replace(mine, []byte(strconv.Itoa(user)))
		}
	}
	return 0, errors.New("no user is free for the task")
}

// ClaimedUser is the user whose claim lies in the agent's own folder of a task; 0: none.
func ClaimedUser(own string) int {
	text, err := os.ReadFile(filepath.Join(own, "user"))
	if err != nil {
		return 0
	}
	user, err := strconv.Atoi(string(text))
	if err != nil || user < firstUser || user >= firstUser+users {
		return 0
	}
	return user
}

// Separate reports whether an agent of this process' user, with its machine's folder there, runs programs as users of
// their own; why says why not.
func Separate(taskUser, machine string) (ok bool, why string) {
	switch {
	case taskUser != UserAuto:
		return false, "SCRIMP_TASK_USER is not auto"
	case os.Geteuid() != 0:
		return false, "the agent is not root"
	case runtime.GOOS != "linux":
		return false, "only Linux shows whose a process is"
	}
	for dir := filepath.Dir(machine); ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		switch {
		case err != nil || st.Mode().Perm()&0o001 == 0:
			return false, fmt.Sprintf("other users do not reach the machine's folder: %s is closed to them", dir)
		case st.Mode().Perm()&0o002 != 0 && st.Mode()&fs.ModeSticky == 0:
			return false, fmt.Sprintf("other users could replace the machine's folder: %s may be written to by all", dir)
		}
		if dir == filepath.Dir(dir) {
			return true, ""
		}
	}
}

// Package place manages what a task has on its machine: its folders, its slot, its user, and the
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

// Values of SCRIMP_TASK_USER: which user runs the processes of a task.
const (
	UserAuto = "auto" // a separate user for each task, if the agent is root and others reach the machine's folder
	UserSame = "same" // the agent's user
)

// Range of the tasks' users, which no system assigns to people, services or containers.
const (
	firstUser = 480_000
	users     = 40_000
)

// ClaimUser returns the user of an attempt. It is the same after a restart of the agent, and has no
// other task of this machine and no process on this host. tasks is the folder that holds the
// agent's own folder of each task.
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
			return 0, fmt.Errorf("read the user of a task: %s contains %q", path, text)
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
	return 0, errors.New("no free user id for the task")
}

// ClaimedUser returns the user claimed in the agent's own folder of a task, or 0.
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

// Separate reports whether an agent of this process' user with this machine folder runs programs as
// separate users; why is the reason if it does not.
func Separate(taskUser, machine string) (ok bool, why string) {
	switch {
	case taskUser != UserAuto:
		return false, "SCRIMP_TASK_USER is not auto"
	case os.Geteuid() != 0:
		return false, "the agent is not root"
	case runtime.GOOS != "linux":
		return false, "only Linux shows the user of a process"
	}
	for dir := filepath.Dir(machine); ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		switch {
		case err != nil || st.Mode().Perm()&0o001 == 0:
			return false, fmt.Sprintf("other users cannot reach the machine's folder: they may not enter %s", dir)
		case st.Mode().Perm()&0o002 != 0 && st.Mode()&fs.ModeSticky == 0:
			return false, fmt.Sprintf("other users could replace the machine's folder: all may write to %s", dir)
		}
		if dir == filepath.Dir(dir) {
			return true, ""
		}
	}
}

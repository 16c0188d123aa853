// Package place is what a task has on its machine: its folders, the slot and the user that are its own, and the
// environment of its program.
package place

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"scrimp/internal/agent/program"
	"scrimp/internal/lib/durable"
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

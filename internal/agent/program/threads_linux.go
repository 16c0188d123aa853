package program

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

func eachThread(do func(tid int) error) error {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if err := do(tid); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

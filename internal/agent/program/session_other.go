//go:build !linux

package program

import "syscall"

func ownSession(user int, _ *cgroup) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: As(user)}
}

// StepBack lowers the priority of this process.
func StepBack() error { return syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10) }

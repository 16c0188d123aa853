package program

import "syscall"

// ownSession gives the program a session and group of its own, and lets the
// kernel kill the main process when the thread that started it is gone.
func ownSession(user int, c *cage) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: As(user)}
	if c != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(c.fd.Fd())
	}
	return a
}

// StepBack lowers the priority of every thread of this process, so that the
// agent's uploads never take the processor from the program. Processes that are
// started later inherit it.
func StepBack() error {
	return eachThread(func(tid int) error { return syscall.Setpriority(syscall.PRIO_PROCESS, tid, 10) })
}

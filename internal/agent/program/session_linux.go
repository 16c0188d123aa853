package program

import "syscall"

// ownSession gives the program its own session and process group, and has the kernel kill the main
// process when the thread that started it ends.
func ownSession(user int, c *cgroup) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: As(user)}
	if c != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(c.fd.Fd())
	}
	return a
}

// StepBack lowers the priority of every thread of this process, so that uploads do not take
// processor time from the program. Processes started later inherit it.
func StepBack() error {
	return eachThread(func(tid int) error { return syscall.Setpriority(syscall.PRIO_PROCESS, tid, 10) })
}

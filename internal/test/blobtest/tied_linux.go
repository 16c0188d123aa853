package blobtest

import "syscall"

// tied ends a process with the one that started it, also when that is killed.
func tied() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

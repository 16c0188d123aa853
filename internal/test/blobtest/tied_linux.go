package blobtest

import "syscall"

// tied kills a process together with its parent, even if the parent is killed.
func tied() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

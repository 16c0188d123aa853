package cli

import "golang.org/x/sys/unix"

// closeMemory hides this process's memory and initial environment from other processes of its user. They hold the
// database password and the keys of stores, and on the local market the programs of jobs run as such processes.
// Afterwards only root can read them, and the process dumps no core. Child processes are not affected.
func closeMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

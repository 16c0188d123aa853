package cli

import "golang.org/x/sys/unix"

// closeMemory keeps other processes of this one's user from its memory and its first environment, which hold the
// password of the database and the keys of stores: the programs of jobs on the local market are such processes.
// Only root reads them then, and no core is dumped. What this process starts is as open as any.
func closeMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

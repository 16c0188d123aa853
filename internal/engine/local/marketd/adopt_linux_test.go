package marketd

import "golang.org/x/sys/unix"

// adopt makes this process the parent of orphans among its descendants, as an agent does.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

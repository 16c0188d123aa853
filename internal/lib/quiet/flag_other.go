//go:build !linux

package quiet

import "syscall"

// Flag opens a file for reading. These systems have no flag that leaves the access time.
const Flag = syscall.O_RDONLY

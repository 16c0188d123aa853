package quiet

import "syscall"

// Flag opens a file for reading without changing its access time. Only the owner of the file and root may do that: for
// others, the system refuses to open it.
const Flag = syscall.O_RDONLY | syscall.O_NOATIME

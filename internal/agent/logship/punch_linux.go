package logship

import (
	"os"
	"syscall"
)

// Flags of fallocate(2): the file keeps its size, and the punched bytes read as zeros.
const (
	keepSize  = 0x01
	punchHole = 0x02
)

// punch releases the disk space of the file's bytes from..to.
func punch(f *os.File, from, to int64) error {
	return syscall.Fallocate(int(f.Fd()), keepSize|punchHole, from, to-from)
}

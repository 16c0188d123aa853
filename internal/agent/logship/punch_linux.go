package logship

import (
	"os"
	"syscall"
)

// Of fallocate(2): the file keeps its size, and what is punched out reads as zeros.
const (
	keepSize  = 0x01
	punchHole = 0x02
)

// punch gives the file's bytes from..to back to the disk.
func punch(f *os.File, from, to int64) error {
	return syscall.Fallocate(int(f.Fd()), keepSize|punchHole, from, to-from)
}

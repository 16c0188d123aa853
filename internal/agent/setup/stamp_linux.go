package setup

import (
	"fmt"
	"io/fs"
	"syscall"
)

// stamp returns a file's inode number and change time, which no program can set.
func stamp(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d %d.%d", s.Ino, s.Ctim.Sec, s.Ctim.Nsec)
}

package condition

import (
	"io/fs"
	"syscall"
	"time"
)

// changed returns when a file came to the folder: the later of the time of its content and the time of its inode, which
// also changes when an old file is moved there.
func changed(stat fs.FileInfo) time.Time {
	t := stat.ModTime()
	if s, ok := stat.Sys().(*syscall.Stat_t); ok {
		if c := time.Unix(s.Ctim.Unix()); c.After(t) {
			t = c
		}
	}
	return t.UTC()
}

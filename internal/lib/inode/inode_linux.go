// Package inode returns the identity of a file, its links, its size on disk and its times.
package inode

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// blockSize is the unit of Stat_t.Blocks, whatever the file system, in bytes.
const blockSize = 512

// Identity tells one file, and one state of it, from another.
type Identity struct {
	Dev, Ino, Links uint64
	Disk            int64     // bytes on disk
	Changed         time.Time // last change of its contents, times, names or permissions; no program can set it
	Used            time.Time // last read or written
}

// String returns a text that differs for another file and for a changed one.
func (i Identity) String() string { return fmt.Sprintf("%d/%d/%d", i.Dev, i.Ino, i.Changed.UnixNano()) }

// Of returns the identity of a file from the result of Stat or Lstat.
func Of(info fs.FileInfo) Identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{Links: 1, Disk: info.Size(), Used: info.ModTime(), Changed: info.ModTime()}
	}
	used := time.Unix(st.Atim.Unix())
	if info.ModTime().After(used) {
		used = info.ModTime()
	}
	return Identity{uint64(st.Dev), st.Ino, uint64(st.Nlink), st.Blocks * blockSize, time.Unix(st.Ctim.Unix()), used}
}

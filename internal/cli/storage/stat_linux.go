package storage

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// blockSize is the unit of Stat_t.Blocks, whatever the file system, in bytes.
const blockSize = 512

// identity is what the file system says about a file besides its size.
type identity struct {
	dev, ino, links uint64
	disk            int64     // bytes that it takes
	changed         time.Time // last change of its contents, times, names or permissions; no program can set it
	used            time.Time // last read or written
}

func (i identity) String() string { return fmt.Sprintf("%d/%d/%d", i.dev, i.ino, i.changed.UnixNano()) }

func identify(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{links: 1, disk: info.Size(), used: info.ModTime(), changed: info.ModTime()}
	}
	used := time.Unix(st.Atim.Unix())
	if info.ModTime().After(used) {
		used = info.ModTime()
	}
	return identity{uint64(st.Dev), st.Ino, uint64(st.Nlink), st.Blocks * blockSize, time.Unix(st.Ctim.Unix()), used}
}

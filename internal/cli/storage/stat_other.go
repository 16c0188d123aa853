//go:build !linux

package storage

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// identity is what the file system says about a file besides its size.
type identity struct {
	dev, ino, links uint64
	used            time.Time // last written
}

func (i identity) String() string { return fmt.Sprintf("%d/%d", i.dev, i.ino) }

func identify(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{links: 1, used: info.ModTime()}
	}
	return identity{uint64(st.Dev), uint64(st.Ino), uint64(st.Nlink), info.ModTime()}
}

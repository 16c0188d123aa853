//go:build !linux

package workdir

import "golang.org/x/sys/unix"

// syncAll flushes all file systems to disk.
func syncAll(string) error { return unix.Sync() }

//go:build !linux

package durable

import "golang.org/x/sys/unix"

// SyncAll flushes all file systems to disk.
func SyncAll(string) error { return unix.Sync() }

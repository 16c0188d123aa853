//go:build !linux

package workdir

import "golang.org/x/sys/unix"

// syncAll makes durable what was written.
func syncAll(string) error { return unix.Sync() }

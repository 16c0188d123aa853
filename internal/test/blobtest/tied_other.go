//go:build !linux

package blobtest

import "syscall"

func tied() *syscall.SysProcAttr { return nil }

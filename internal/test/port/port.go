//go:build unix

// Package port gives tests ports for programs that cannot be handed a listener. It is for tests only.
package port

import (
	"errors"
	"syscall"
	"testing"
)

// Reserve returns a port without a listener that the kernel gives to nobody else until the test ends. A program that
// sets SO_REUSEADDR, as every Go listener does, can still listen on it: a bound socket that does not listen allows
// that.
func Reserve(t testing.TB) int {
	t.Helper()
	syscall.ForkLock.RLock() // no child inherits the socket
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal("reserve a port: ", err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	err = errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(fd, &syscall.SockaddrInet4{}))
	if err != nil {
		t.Fatal("reserve a port: ", err)
	}
	name, err := syscall.Getsockname(fd)
	in, ok := name.(*syscall.SockaddrInet4)
	if err != nil || !ok {
		t.Fatal("reserve a port: ", err)
	}
	return in.Port
}

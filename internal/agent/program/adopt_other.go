//go:build !linux

package program

// Adopt is not available on this system.
func Adopt() error { return ErrBlind }

//go:build !linux

package program

// Adopt is not known on this system.
func Adopt() error { return ErrBlind }

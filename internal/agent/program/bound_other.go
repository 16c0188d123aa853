//go:build !linux

package program

// BoundUsers does nothing: on this system no task has its own user.
func BoundUsers() error { return nil }

func preferOOMKill(int) error { return nil }

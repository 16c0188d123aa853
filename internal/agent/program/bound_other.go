//go:build !linux

package program

// BoundUsers is not needed where no task has a user of its own.
func BoundUsers() error { return nil }

func goesFirst(int) error { return nil }

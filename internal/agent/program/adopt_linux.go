package program

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of orphans among its descendants.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphaned processes: %w", err)
	}
	return nil
}

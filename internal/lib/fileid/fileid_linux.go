package fileid

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Of returns the identity of a file or folder: its inode number and its time of birth. A copy has another identity; a
// move within the file system keeps it.
func Of(path string) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", path, err)
	}
	return fmt.Sprintf("file/%d/%d.%d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}

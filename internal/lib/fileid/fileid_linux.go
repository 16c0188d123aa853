package fileid

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Of is the file or folder itself: its number and its birth, which a copy does not share
// and a move within its file system keeps.
func Of(path string) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", path, err)
	}
	return fmt.Sprintf("file/%d/%d.%d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}

package command

import (
	"os"
	"syscall"
	"unsafe"
)

// terminalWidth asks the terminal behind f for its width.
func terminalWidth(f *os.File) (width int, ok bool) {
	var size struct{ rows, cols, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return 80, false
	}
	if size.cols == 0 {
		return 80, true
	}
	return int(size.cols), true
}

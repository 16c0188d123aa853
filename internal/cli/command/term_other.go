//go:build !linux

package command

import "os"

// terminalWidth knows only whether f is a terminal.
func terminalWidth(f *os.File) (width int, ok bool) {
	i, err := f.Stat()
	return 80, err == nil && i.Mode()&os.ModeCharDevice != 0
}

package command

import (
	"os"

	"golang.org/x/term"
)

// terminalWidth returns the width of the terminal behind f.
func terminalWidth(f *os.File) (width int, ok bool) {
	width, _, ok = TerminalSize(f)
	return width, ok
}

// TerminalSize returns the size of the terminal behind f, in cells.
func TerminalSize(f *os.File) (width, height int, ok bool) {
	width, height, err := term.GetSize(int(f.Fd()))
	switch {
	case err != nil:
		return 80, 24, false
	case width == 0: // the terminal does not tell
		return 80, 24, true
	}
	return width, height, true
}

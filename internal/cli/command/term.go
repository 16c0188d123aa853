package command

import (
	"os"

	"golang.org/x/term"
)

// terminalWidth asks the terminal behind f for its width.
func terminalWidth(f *os.File) (width int, ok bool) {
	width, _, ok = TerminalSize(f)
	return width, ok
}

// TerminalSize is how large the terminal behind f is, in cells.
func TerminalSize(f *os.File) (width, height int, ok bool) {
	width, height, err := term.GetSize(int(f.Fd()))
	switch {
	case err != nil:
		return 80, 24, false
	case width == 0: // it does not say
		return 80, 24, true
	}
	return width, height, true
}

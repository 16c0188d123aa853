// Package quiet reads files and leaves the time of their last use as it is where the system allows that, so that rules
// about unused files go on to match what only scrimp has read.
package quiet

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Open opens a file for reading. If the system forbids to leave its time of last use, because another user owns the
// file, Open opens it as usual.
func Open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, Flag, 0)
	if errors.Is(err, fs.ErrPermission) {
		return os.Open(name)
	}
	return f, err
}

// OpenIn is Open for a file in a root.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, Flag, 0)
	if errors.Is(err, fs.ErrPermission) {
		return root.Open(name)
	}
	return f, err
}

// ReadFileIn returns the contents of a file in a root.
func ReadFileIn(root *os.Root, name string) ([]byte, error) {
	f, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(f)
}

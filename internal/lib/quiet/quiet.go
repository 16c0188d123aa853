// Package quiet reads files without changing their access time, if the system allows that. Otherwise a rule that
// deletes unused files would count scrimp's own reads as use.
package quiet

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Open opens a file for reading. If the system does not allow it to keep the access time, because another user owns the
// file, Open opens the file as usual.
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

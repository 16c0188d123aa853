//go:build !linux

package folder

import (
	"io/fs"
	"os"
)

// clone is not available on this system.
func clone(*os.File, string) (bool, error) { return false, nil }

// room does not check on this system.
func room(*os.File, string) error { return nil }

// copyData copies a file.
func copyData(out, in *os.File) error { return copyWhole(out, in) }

// link gives the file at a path another name.
func link(_ *os.File, from, to string) error { return os.Link(from, to) }

func inode(fs.FileInfo) uint64 { return 0 }

func device(fs.FileInfo) uint64 { return 0 }

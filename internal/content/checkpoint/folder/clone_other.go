//go:build !linux

package folder

import (
	"io/fs"
	"os"
)

// clone is not known on this system.
func clone(*os.File, string) (bool, error) { return false, nil }

// room is not asked for on this system.
func room(*os.File, string) error { return nil }

// copyData copies what a file holds.
func copyData(out, in *os.File) error { return copyWhole(out, in) }

// link gives the file at a path another name.
func link(_ *os.File, from, to string) error { return os.Link(from, to) }

func inode(fs.FileInfo) uint64 { return 0 }

func device(fs.FileInfo) uint64 { return 0 }

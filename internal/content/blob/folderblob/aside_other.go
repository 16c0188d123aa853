//go:build !linux

package folderblob

import (
	"io/fs"
	"os"
)

func newAside(dir string) (*aside, error) { return namedAside(dir) }

// appear gives the file its name. With absent it fails with fs.ErrExist if the name is taken.
func (a *aside) appear(path string, absent bool) error {
	if absent {
		return os.Link(a.name, path)
	}
	if err := os.Rename(a.name, path); err != nil {
		return err
	}
	a.name = ""
	return nil
}

func inode(fs.FileInfo) uint64 { return 0 }

// startWriting does nothing on this system.
func startWriting(*os.File, int64, int64) {}

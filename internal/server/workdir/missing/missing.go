// Package missing finds work folders that submissions stored and that are not in the store any more.
package missing

import (
	"errors"
	"fmt"
	"io/fs"

	"scrimp/internal/server/workdir"
)

// Error means that the work folder that a submission stored is not in the store any more.
type Error struct {
	Name string // that of the job or group
	Tree string // SHA-256 of its list
}

func (e *Error) Error() string {
	return fmt.Sprintf("the work folder of %s (%.12s) is missing from the server's data folder: submit it again from its "+
		"folder, with scrimp run, or restore %s from a backup", e.Name, e.Tree, workdir.Folder)
}

// Is reports whether err is an Error.
func Is(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// Check returns an Error unless the folder under a name is the one with that list.
func Check(s *workdir.Store, name, tree string) error {
	ref, err := s.Of(name)
	if errors.Is(err, workdir.ErrNone) || err == nil && ref.Tree != tree {
		return &Error{name, tree}
	}
	return err
}

// Whole returns an Error unless the store has all contents of the folder under a name.
func Whole(s *workdir.Store, name string) error {
	ref, err := s.Of(name)
	if errors.Is(err, workdir.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	there := func(sum string) {
		if err != nil {
			return
		}
		f, wrong := s.Open(sum)
		if err = wrong; err == nil {
			err = f.Close()
		}
	}
	there(ref.Tree)
	if read := s.Contents(ref.Tree, func(sum string, _ int64) { there(sum) }); err == nil {
		err = read
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{name, ref.Tree}
	}
	return err
}

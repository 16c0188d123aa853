package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// privately makes what this process writes from now on its user's alone, and returns the mask of before, for
// the programs that it starts.
func privately() (before string) { return fmt.Sprintf("%03o", syscall.Umask(0o077)) }

// publicly takes that back.
func publicly(before string) {
	if mask, err := strconv.ParseUint(before, 8, 32); err == nil {
		syscall.Umask(int(mask))
	}
}

// Private makes the data folder and what lies in it its owner's alone, and what this process writes until done.
func Private(dir string) (done func(), err error) {
	before := privately()
	if err := closeFolder(dir, os.Chmod); err != nil {
		publicly(before)
		return nil, err
	}
	return func() { publicly(before) }, nil
}

// others are what other users may do with a file, and what a folder's listing and its files tell them.
const others = 0o077

// passed are folders that other users may have to pass: the machines of an engine lie below them.
var passed = []string{"market", "engines"}

// closeFolder makes the data folder, and closes to other users what is in it: the database, the blobs, work
// folders, output, keys and sockets are its owner's alone, whoever made the folder, and with what mode. The folder
// itself may be passed still, where it could be: the programs of machines that have users of their own
// may have to.
func closeFolder(dir string, chmod func(string, fs.FileMode) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("open data folder: %w", err)
	}
	if err := narrow(dir, 0o066, chmod); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("open data folder: %w", err)
	}
	for _, e := range entries {
		mask := fs.FileMode(others)
		if e.IsDir() && slices.Contains(passed, e.Name()) {
			mask = 0o066
		}
		if e.IsDir() || e.Type().IsRegular() {
			if err := narrow(filepath.Join(dir, e.Name()), mask, chmod); err != nil {
				return err
			}
		}
	}
	return nil
}

// narrow takes rights from what lies there. What is another user's is refused with the command that gives it over.
func narrow(path string, rights fs.FileMode, chmod func(string, fs.FileMode) error) error {
	at, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open data folder: %w", err)
	}
	if at.Mode().Perm()&rights == 0 {
		return nil
	}
	if err := chmod(path, at.Mode().Perm()&^rights); err != nil {
		return fmt.Errorf("%s can be read by other users (mode %03o), and this user cannot change that: %w: run "+
			"chmod -R go-rwx %s as its owner, or name another folder with --data", path, at.Mode().Perm(), err, path)
	}
	return nil
}

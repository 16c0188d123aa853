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

	"scrimp/internal/engine"
	"scrimp/internal/server/secret"
)

// restrictUmask makes the files that this process creates from now on accessible to its user only. It returns the
// previous umask, for the programs that it starts.
func restrictUmask() (before string) { return fmt.Sprintf("%03o", syscall.Umask(0o077)) }

// restoreUmask restores the umask.
func restoreUmask(before string) {
	if mask, err := strconv.ParseUint(before, 8, 32); err == nil {
		syscall.Umask(int(mask))
	}
}

// Private makes the data folder and its contents accessible to its owner only, and also what this process
// writes until done is called.
func Private(dir string) (done func(), err error) {
	before := restrictUmask()
	if err := restrictFolder(dir, os.Chmod); err != nil {
		restoreUmask(before)
		return nil, err
	}
	return func() { restoreUmask(before) }, nil
}

// others are the permission bits of group and others.
const others = 0o077

// passed lists folders that other users may have to traverse: the machines of an engine lie below them.
var passed = []string{"market", "engines"}

// restrictFolder creates the data folder and removes the access of other users to its contents: database, blobs,
// work folders, output, keys and sockets belong to its owner, whoever made the folder and with whatever mode.
// If others could traverse the folder itself, they still can: machines whose programs run as users of their own
// may need to.
func restrictFolder(dir string, chmod func(string, fs.FileMode) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("open data folder: %w", err)
	}
	if err := clearBits(dir, 0o066, chmod); err != nil {
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
			if err := clearBits(filepath.Join(dir, e.Name()), mask, chmod); err != nil {
				return err
			}
		}
	}
	return nil
}

// clearBits clears permission bits of a path, if it exists. If the file belongs to another user, the error names
// the command that fixes it.
func clearBits(path string, rights fs.FileMode, chmod func(string, fs.FileMode) error) error {
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

func (s *Server) vault() secret.Vault { return secret.Vault{Dir: s.opts.Dir} }

// prepareFolder takes the data folder from other users, and links the settings of the engines there.
func prepareFolder(o *Options) error {
	if err := restrictFolder(o.Dir, os.Chmod); err != nil || o.Engines == "" {
		return err
	}
	return engine.LinkSettings(o.Dir, o.Engines)
}

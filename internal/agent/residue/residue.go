// Package residue finds and removes what a task's user left on a machine: processes, files in
// shared folders, and System V memory.
package residue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"scrimp/internal/agent/program"
)

// sharedFolders lists folders that every user may write to, on one system or another.
var sharedFolders = []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/var/lock", "/var/crash"}

// mountsFile lists the mounted file systems; tests replace it.
var mountsFile = "/proc/self/mountinfo"

// ownDisks lists types of file systems that only this machine uses. On a network file system, files
// of the same user number may belong to another machine.
var ownDisks = []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "overlay", "tmpfs"}

// scratch returns the mount points of this machine's disks that every user may write to, such as /scratch.
func scratch() (dirs []string, err error) {
	text, err := os.ReadFile(mountsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		mount, kind, _ := strings.Cut(line, " - ")
		f, k := strings.Fields(mount), strings.Fields(kind)
		if len(f) < 5 || len(k) == 0 || !slices.Contains(ownDisks, k[0]) {
			continue
		}
		dir := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(f[4])
		if info, err := os.Stat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o002 != 0 &&
			!slices.Contains(sharedFolders, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}

// EndUser kills all processes of a task's user and removes the files that they left in shared folders.
func EndUser(user int, machine string) error {
	if err := program.KillUser(user); err != nil {
		return err
	}
	err := eachShared(user, machine, func(dir *os.Root, name, _ string) error { return dir.RemoveAll(name) })
	return errors.Join(err, noneInMemory(user))
}

// NoneShared returns an error if a user left something in shared folders or System V memory.
func NoneShared(user int, machine string) error {
	err := eachShared(user, machine, func(_ *os.Root, name, at string) error {
		return fmt.Errorf("it left %s in %s", name, at)
	})
	return errors.Join(err, noneInMemory(user))
}

// eachShared calls do for each file of a user in the shared folders. It follows no link, and enters
// neither folders that other users cannot search nor the machine's own folder.
func eachShared(user int, machine string, do func(dir *os.Root, name, at string) error) error {
	own, gone := os.Stat(machine)
	more, all := scratch()
	all = errors.Join(gone, all)
	for i, dir := range slices.Concat(sharedFolders, more) {
		root, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			s := shared{own: own, user: user, do: do, open: 0o001}
			if i >= len(sharedFolders) { // large disks with people's data: skip folders that others cannot write to
				s.open = 0o002
			}
			err = errors.Join(s.each(root, dir), root.Close())
		}
		all = errors.Join(all, err)
	}
	return all
}

// shared holds the parameters of a search.
type shared struct {
	own  fs.FileInfo // the machine's folder
	user int
	open fs.FileMode // permission bits that a folder needs to be searched
	do   func(dir *os.Root, name, at string) error
}

// each searches the folder top, which lies at the path at, to any depth: a task can nest folders deeper
// than a path may be long. It holds one folder open at a time and reaches each from the top.
func (s *shared) each(top *os.Root, at string) (all error) {
	for left := []string{"."}; len(left) > 0; {
		dir := left[len(left)-1]
		left = left[:len(left)-1]
		inside, err := s.folder(top, dir, at)
		if !errors.Is(err, fs.ErrNotExist) { // removed in the meantime
			all = errors.Join(all, err)
		}
		for _, name := range inside {
			left = append(left, path.Join(dir, name))
		}
	}
	return all
}

// folder looks at the files in one folder of top and returns the names of the folders in it that are
// to be searched. If other users may not write to the folder, the user has made no files there, so it
// looks only at its subfolders. That keeps the search of someone else's large tree short.
func (s *shared) folder(top *os.Root, name, at string) (inside []string, err error) {
	dir, err := top.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	f, err := dir.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	list, unread := f.ReadDir(-1)
	err = errors.Join(err, unread, f.Close())
	for _, e := range list {
		if !e.IsDir() && info != nil && info.Mode().Perm()&0o002 == 0 {
			continue
		}
		search, wrong := s.one(dir, e.Name(), path.Join(at, name))
		if search {
			inside = append(inside, e.Name())
		}
		err = errors.Join(err, wrong)
	}
	return inside, err
}

// one calls do if a file is the user's. Otherwise it returns whether the file is a folder to search.
func (s *shared) one(dir *os.Root, name, at string) (search bool, err error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || s.own != nil && os.SameFile(info, s.own) {
		return false, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == s.user {
		return false, s.do(dir, name, at)
	}
	return info.IsDir() && info.Mode().Perm()&s.open != 0, nil
}

// noneInMemory returns an error if a user left System V shared memory, semaphores or queues. They
// outlive their processes, and no folder lists them.
func noneInMemory(user int) error {
	for _, kind := range []string{"shm", "sem", "msg"} {
		b, err := os.ReadFile("/proc/sysvipc/" + kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the kernel does not support them
		}
		if err != nil {
			return err
		}
		column := -1
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if column < 0 {
				for i, name := range f {
					if name == "uid" {
						column = i
					}
				}
				continue
			}
			if len(f) > column && f[column] == fmt.Sprint(user) {
				return fmt.Errorf("user %d of a task left shared memory, a semaphore or a queue (ipcs)", user)
			}
		}
	}
	return nil
}

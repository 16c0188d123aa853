// Package residue finds and removes what the user of a task left on a machine: processes, files in the folders that all
// users share, and memory of System V.
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

// sharedFolders are those that every user may write to, on one system or the other.
var sharedFolders = []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/var/lock", "/var/crash"}

// mountsFile says what is mounted where; another in tests.
var mountsFile = "/proc/self/mountinfo"

// ownDisks are file systems of this machine alone. On one that machines share a user of the same number may be
// another's.
var ownDisks = []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "overlay", "tmpfs"}

// scratch are the disks of this machine that every user may write to, such as /scratch.
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

// EndUser ends every process of a task's user and removes what they left in folders that
// all users share.
func EndUser(user int, machine string) error {
	if err := program.KillUser(user); err != nil {
		return err
	}
	err := eachShared(user, machine, func(dir *os.Root, name, _ string) error { return dir.RemoveAll(name) })
	return errors.Join(err, noneInMemory(user))
}

// NoneShared reports what a user has in the folders that all users share.
func NoneShared(user int, machine string) error {
	err := eachShared(user, machine, func(_ *os.Root, name, at string) error {
		return fmt.Errorf("it left %s in %s", name, at)
	})
	return errors.Join(err, noneInMemory(user))
}

// eachShared calls do with what belongs to a user in the shared folders. It goes through
// no link, and neither into a folder that other users cannot pass nor into the machine's own,
// wherever that is.
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
			if i >= len(sharedFolders) { // large ones, for people's data: what nobody else may write to is passed by
				s.open = 0o002
			}
			err = errors.Join(s.each(root, dir, 0), root.Close())
		}
		all = errors.Join(all, err)
	}
	return all
}

// mostDeep bounds folders of other tasks that are looked through: each is open while those in it are looked through.
const mostDeep = 100

// shared is how shared folders are looked through.
type shared struct {
	own  fs.FileInfo // of the machine's folder
	user int
	open fs.FileMode // what others may do with folders that are looked into
	do   func(dir *os.Root, name, at string) error
}

// each looks through a folder. Where others may not write, a user has made nothing: only the folders there are
// looked at, so that a large tree of somebody else's takes little time.
func (s *shared) each(dir *os.Root, at string, deep int) error {
	if deep >= mostDeep {
		return fmt.Errorf("%s: more than %d folders within one another are not looked through", at, mostDeep)
	}
	f, err := dir.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) { // somebody has just removed it
		return nil
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	list, unread := f.ReadDir(-1)
	if errors.Is(unread, fs.ErrNotExist) { // likewise
		unread = nil
	}
	err = errors.Join(err, unread, f.Close())
	for _, e := range list {
		if e.IsDir() || info == nil || info.Mode().Perm()&0o002 != 0 {
			err = errors.Join(err, s.one(dir, e.Name(), at, deep))
		}
	}
	return err
}

func (s *shared) one(dir *os.Root, name, at string, deep int) error {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || s.own != nil && os.SameFile(info, s.own) {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && int(stat.Uid) == s.user:
		return s.do(dir, name, at)
	case info.IsDir() && info.Mode().Perm()&s.open != 0:
		next, err := dir.OpenRoot(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(s.each(next, path.Join(at, name), deep+1), next.Close())
	}
	return nil
}

// noneInMemory reports segments, semaphores and queues of System V that a user has made:
// they stay when its processes end, and no folder lists them.
func noneInMemory(user int) error {
	for _, kind := range []string{"shm", "sem", "msg"} {
		b, err := os.ReadFile("/proc/sysvipc/" + kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the kernel has none
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

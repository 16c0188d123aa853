package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"scrimp/internal/agent/program"
)

// sharedFolders are those that every user may write to.
var sharedFolders = []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"}

// endUser ends every process of a task's user and removes what they left in folders that
// all users share.
func endUser(user int, machine string) error {
	if err := program.KillUser(user); err != nil {
		return err
	}
	err := eachShared(user, machine, func(root *os.Root, name string) error { return root.RemoveAll(name) })
	return errors.Join(err, noneInMemory(user))
}

// noneShared reports what a user has in the folders that all users share.
func noneShared(user int, machine string) error {
	err := eachShared(user, machine, func(root *os.Root, name string) error {
		return fmt.Errorf("it left %s in %s", name, root.Name())
	})
	return errors.Join(err, noneInMemory(user))
}

// eachShared calls do with what belongs to a user in the shared folders. It goes through
// no link, and neither into a folder that other users cannot pass nor into the machine's own,
// wherever that is.
func eachShared(user int, machine string, do func(root *os.Root, name string) error) error {
	own, all := os.Stat(machine)
	for _, dir := range sharedFolders {
		root, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			s := shared{root: root, own: own, user: user, do: do}
			err = errors.Join(s.each("."), root.Close())
		}
		all = errors.Join(all, err)
	}
	return all
}

// shared is a folder of all users.
type shared struct {
	root *os.Root
	own  fs.FileInfo // of the machine's folder
	user int
	do   func(root *os.Root, name string) error
}

func (s *shared) each(dir string) error {
	names, err := namesIn(s.root, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		err = errors.Join(err, s.one(path.Join(dir, n)))
	}
	return err
}

func (s *shared) one(name string) error {
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || s.own != nil && os.SameFile(info, s.own) {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && int(stat.Uid) == s.user:
		return s.do(s.root, name)
	case info.IsDir() && info.Mode().Perm()&0o001 != 0:
		return s.each(name)
	}
	return nil
}

func namesIn(root *os.Root, dir string) ([]string, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
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

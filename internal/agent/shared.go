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
func endUser(user int) error {
	if err := program.KillUser(user); err != nil {
		return err
	}
	err := eachShared(user, func(root *os.Root, name string) error { return root.RemoveAll(name) })
	return errors.Join(err, noneInMemory(user))
}

// noneShared reports what a user has in the folders that all users share.
func noneShared(user int) error {
	err := eachShared(user, func(root *os.Root, name string) error {
		return fmt.Errorf("it left %s in %s", name, root.Name())
	})
	return errors.Join(err, noneInMemory(user))
}

// eachShared calls do with what belongs to a user in the shared folders. It goes through
// no link, and into no folder that other users cannot pass.
func eachShared(user int, do func(root *os.Root, name string) error) error {
	var all error
	for _, dir := range sharedFolders {
		root, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(eachOf(root, ".", user, do), root.Close())
		}
		all = errors.Join(all, err)
	}
	return all
}

func eachOf(root *os.Root, dir string, user int, do func(root *os.Root, name string) error) error {
	names, err := namesIn(root, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		name := path.Join(dir, n)
		info, e := root.Lstat(name)
		if errors.Is(e, fs.ErrNotExist) {
			continue
		}
		s, ok := (*syscall.Stat_t)(nil), false
		if e == nil {
			s, ok = info.Sys().(*syscall.Stat_t)
		}
		switch {
		case e != nil:
		case ok && int(s.Uid) == user:
			e = do(root, name)
		case info.IsDir() && info.Mode().Perm()&0o001 != 0:
			e = eachOf(root, name, user, do)
		}
		err = errors.Join(err, e)
	}
	return err
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

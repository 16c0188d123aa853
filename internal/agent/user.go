package agent

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"scrimp/internal/agent/program"
	"scrimp/internal/agent/save"
)

// Whose the processes of a task are (SCRIMP_TASK_USER).
const (
	UserAuto = "auto" // a user of each task's own, where the agent is root and others reach the machine's folder
	UserSame = "same" // the agent's
)

// Users of tasks are of a range that no system gives to people, services or containers.
const (
	firstUser = 480_000
	users     = 40_000
)

// separate reports whether programs run as users of their own; why says why not.
func (c *Config) separate() (ok bool, why string) {
	switch {
	case c.TaskUser != UserAuto:
		return false, "SCRIMP_TASK_USER is not auto"
	case os.Geteuid() != 0:
		return false, "the agent is not root"
	}
	for dir := filepath.Dir(c.MachineDir); ; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err != nil || st.Mode().Perm()&0o001 == 0 {
			return false, fmt.Sprintf("other users do not reach the machine's folder: %s is closed to them", dir)
		}
		if dir == filepath.Dir(dir) {
			return true, ""
		}
	}
}

// userOf is the user of a task: the same after a restart of the agent.
func userOf(instance, attempt string) int {
	return firstUser + int(crc32.ChecksumIEEE([]byte(instance+"/"+attempt))%users)
}

// open lets the task's user in, and nobody else: what lies above is passed, not read.
func (g *attempt) openTo(user int) error {
	g.user = user
	g.folders.log = filepath.Join(g.folders.own, "log") // where the program cannot put another file in its place
	return errors.Join(os.Chmod(g.MachineDir, 0o711), os.Chmod(filepath.Dir(g.folders.top), 0o711))
}

// handOver gives the task's folder to its user, before anything of the user's has run.
func (g *attempt) handOver() error {
	if g.user == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(g.folders.top, "home"), 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(g.folders.top, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, g.user, g.user))
	})
}

// inside reports why a path of the program's is not one that the agent, which is root, may
// use for it: it leads out of the task's folder.
func (g *attempt) inside(path string) error {
	if g.user == 0 {
		return nil
	}
	top, err := filepath.EvalSymlinks(g.folders.top)
	if err != nil {
		return err
	}
	for at := path; ; at = filepath.Dir(at) {
		found, err := filepath.EvalSymlinks(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			if st, e := os.Lstat(at); e == nil && st.Mode()&fs.ModeSymlink != 0 {
				return fmt.Errorf("%s is a link that leads nowhere", at)
			}
			continue
		}
		if err != nil {
			return err
		}
		if found != top && !strings.HasPrefix(found, top+string(filepath.Separator)) {
			return fmt.Errorf("%s is not below the folder of the task: with SCRIMP_TASK_USER=auto checkpoint.dir must be", path)
		}
		return nil
	}
}

// ownVault takes nothing from a folder that leads out of the task's.
type ownVault struct {
	save.Vault
	g *attempt
}

// Capture implements save.Vault.
func (v ownVault) Capture(ctx context.Context, dir string) (save.Capture, error) {
	if err := v.g.inside(dir); err != nil {
		return nil, err
	}
	return v.Vault.Capture(ctx, dir)
}

// endAll ends what is left of the task's user.
func (g *attempt) endAll() error {
	if g.user == 0 {
		return nil
	}
	return program.KillUser(g.user)
}

// home is the machine's environment, with the folders of a user who has none.
func (g *attempt) home() []string {
	if g.user == 0 {
		return g.Environ
	}
	home := filepath.Join(g.folders.top, "home")
	return append(slices.Clone(g.Environ), "HOME="+home, "TMPDIR="+home, "USER=task", "LOGNAME=task")
}

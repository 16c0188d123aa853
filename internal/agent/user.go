package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"scrimp/internal/agent/program"
	"scrimp/internal/lib/confined"
	"scrimp/internal/lib/durable"
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

// Apart reports whether an agent of this process' user, with its machine's folder there,
// can run programs as users of their own; why says why not.
func Apart(machineDir string) (ok bool, why string) {
	return (&Config{TaskUser: UserAuto, MachineDir: machineDir}).separate()
}

// separate reports whether programs run as users of their own; why says why not.
func (c *Config) separate() (ok bool, why string) {
	switch {
	case c.TaskUser != UserAuto:
		return false, "SCRIMP_TASK_USER is not auto"
	case os.Geteuid() != 0:
		return false, "the agent is not root"
	case runtime.GOOS != "linux":
		return false, "only Linux shows whose a process is"
	}
	for dir := filepath.Dir(c.MachineDir); ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		switch {
		case err != nil || st.Mode().Perm()&0o001 == 0:
			return false, fmt.Sprintf("other users do not reach the machine's folder: %s is closed to them", dir)
		case st.Mode().Perm()&0o002 != 0 && st.Mode()&fs.ModeSticky == 0:
			return false, fmt.Sprintf("other users could replace the machine's folder: %s may be written to by all", dir)
		}
		if dir == filepath.Dir(dir) {
			return true, ""
		}
	}
}

// openTo gives the task a user, and lets that user in and nobody else: what lies above its
// folder is passed, not read.
func (g *attempt) openTo() (err error) {
	if g.user, err = claimUser(filepath.Dir(g.folders.own), g.a.Attempt); err != nil {
		return err
	}
	g.folders.log = filepath.Join(g.folders.own, "log") // where the program cannot put another file in its place
	return errors.Join(os.Chmod(g.MachineDir, 0o711), os.Chmod(filepath.Dir(g.folders.top), 0o711))
}

// claimUser returns the user of an attempt: the same after a restart of the agent, and
// nobody who has another task of this machine or a process on this host. tasks holds what is
// the agent's of each task.
func claimUser(tasks, attempt string) (int, error) {
	claims, err := filepath.Glob(filepath.Join(tasks, "*", "user"))
	if err != nil {
		return 0, err
	}
	mine, taken := filepath.Join(tasks, attempt, "user"), map[int]bool{}
	for _, path := range claims {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		user, err := strconv.Atoi(string(text))
		if err != nil || user < firstUser || user >= firstUser+users {
			return 0, fmt.Errorf("read the user of a task: %s holds %q", path, text)
		}
		if path == mine {
			return user, nil
		}
		taken[user] = true
	}
	for range 1000 {
		user := firstUser + rand.IntN(users)
		if !taken[user] && !program.Runs(user) {
			return user, durable.Replace(mine, []byte(strconv.Itoa(user)))
		}
	}
	return 0, errors.New("no user is free for the task")
}

// claimedUser is the user whose claim lies in the agent's own folder of a task; 0: none.
func claimedUser(own string) int {
	text, err := os.ReadFile(filepath.Join(own, "user"))
	if err != nil {
		return 0
	}
	user, err := strconv.Atoi(string(text))
	if err != nil || user < firstUser || user >= firstUser+users {
		return 0
	}
	return user
}

// beginAnew makes the task's folder, empty where it has a user: a set-up that an agent before
// us ran may have left processes, and links where the agent is about to write.
func (g *attempt) beginAnew() error {
	if g.user != 0 {
		if err := g.endAll(); err != nil {
			return err
		}
		if err := errors.Join(removeAll(g.folders.top), os.RemoveAll(g.setupDone())); err != nil {
			return err
		}
	}
	return os.MkdirAll(g.folders.work, 0o700)
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

// reading is how the agent reads what the program writes. Where that is another user the
// agent is root: it follows no link out of the task's folder and reads nobody else's files.
func (g *attempt) reading(path string) confined.Folder {
	if g.user == 0 {
		return confined.Folder{Path: path}
	}
	return confined.Folder{Path: path, Within: g.folders.top, Owner: g.user}
}

// sharesNoFolder refuses stores that are folders of the machine where the agent is root and
// programs are not: with one the job would read and write what root can.
func (g *attempt) sharesNoFolder() error {
	if g.user == 0 {
		return nil
	}
	for _, address := range []string{g.a.Checkpoint.URL, g.a.OutputsURL, g.a.Workdir} {
		if u, err := url.Parse(address); err == nil && u.Scheme == "file" {
			return fmt.Errorf("%s: a folder of the machine cannot be a store where programs run as users of their own: take "+
				"the server's store or a bucket, or set users: same for the engine", address)
		}
	}
	return nil
}

// endAll ends what is left of the task: all that its user has, and where it has none what its programs left
// behind, as far as no other task's can be among that.
func (g *attempt) endAll() error {
	switch {
	case g.user != 0:
		return program.KillUser(g.user)
	case g.Sole && g.only != nil && g.only():
		return program.KillOrphans()
	}
	return nil
}

// home is the machine's environment, with the folders of a user who has none.
func (g *attempt) home() []string {
	if g.user == 0 {
		return g.Environ
	}
	home := filepath.Join(g.folders.top, "home")
	return append(slices.Clone(g.Environ), "HOME="+home, "TMPDIR="+home, "USER=task", "LOGNAME=task")
}

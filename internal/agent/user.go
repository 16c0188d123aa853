package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"scrimp/internal/agent/place"
	"scrimp/internal/agent/program"
	"scrimp/internal/lib/confined"
	"scrimp/internal/wire/api"
)

// Whose the processes of a task are (SCRIMP_TASK_USER).
const (
	UserAuto = "auto" // a user of each task's own, where the agent is root and others reach the machine's folder
	UserSame = "same" // the agent's
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
	if g.user, err = place.ClaimUser(filepath.Dir(g.folders.Own), g.a.Attempt); err != nil {
		return err
	}
	g.folders.Log = filepath.Join(g.folders.Own, "log") // where the program cannot put another file in its place
	return errors.Join(os.Chmod(g.MachineDir, 0o711), os.Chmod(filepath.Dir(g.folders.Top), 0o711))
}

// beginAnew makes the task's folder, empty where it has a user: a set-up that an agent before
// us ran may have left processes, and links where the agent is about to write.
func (g *attempt) beginAnew() error {
	if g.user != 0 {
		if err := g.endAll(); err != nil {
			return err
		}
		if err := errors.Join(place.RemoveAll(g.folders.Top), os.RemoveAll(g.setupDone())); err != nil {
			return err
		}
	}
	return os.MkdirAll(g.folders.Work, 0o700)
}

// handOver gives the task's folder to its user, before anything of the user's has run.
func (g *attempt) handOver() error {
	if g.user == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(g.folders.Top, "home"), 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(g.folders.Top, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, g.user, g.user))
	})
}

// reading is how the agent reads what the program writes. Where that is another user the
// agent is root: it follows no link out of the task's folder and reads nobody else's files.
func (g *attempt) reading(path string) confined.Folder {
	if g.user == 0 {
		return confined.Folder{Path: path}
	}
	return confined.Folder{Path: path, Within: g.folders.Top, Owner: g.user}
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
	home := filepath.Join(g.folders.Top, "home")
	return append(slices.Clone(g.Environ), "HOME="+home, "TMPDIR="+home, "USER=task", "LOGNAME=task")
}

// withhold keeps what is of the submitter's shell from a user of the task's own, who cannot read the
// submitter's files, and says which of the names that the job asked for it does not get.
func (g *attempt) withhold(output io.Writer) error {
	if g.user != 0 {
		for _, name := range slices.Sorted(maps.Keys(g.a.Shell)) {
			if !slices.Contains(api.Shell, name) {
				g.a.Withheld = append(g.a.Withheld, name)
			}
		}
		g.a.Shell = nil
	}
	if len(g.a.Withheld) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(output, "scrimp: not set on this machine, which does not share the files of the shell that "+
		"submitted: %s (inherit): write values for it under env or secrets\n", strings.Join(g.a.Withheld, ", "))
	return err
}

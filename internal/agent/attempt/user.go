package attempt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"scrimp/internal/agent/place"
	"scrimp/internal/agent/program"
	"scrimp/internal/lib/confined"
	"scrimp/internal/wire/api"
)

// assignUser assigns a user to the task and lets only that user into the task's folder. Other users can
// pass the folders above it but not list them.
func (g *Attempt) assignUser() (err error) {
	if g.User, err = place.ClaimUser(filepath.Dir(g.Folders.Own), g.Task.Attempt); err != nil {
		return err
	}
	g.Folders.Log = filepath.Join(g.Folders.Own, "log") // the program cannot replace this file
	return errors.Join(os.Chmod(g.MachineDir, 0o711), os.Chmod(filepath.Dir(g.Folders.Top), 0o711))
}

// makeFolders makes the task's folder. It empties the folder of a task with its own user, because a
// set-up that a previous agent ran may have left processes, or links where the agent is about to
// write.
func (g *Attempt) makeFolders() error {
	if g.User != 0 {
		if err := g.EndAll(); err != nil {
			return err
		}
		if err := errors.Join(place.RemoveAll(g.Folders.Top), os.RemoveAll(g.setupDone())); err != nil {
			return err
		}
	}
	return os.MkdirAll(g.Folders.Work, 0o700)
}

// handOver gives the task's folder to its user, before any of the user's programs runs.
func (g *Attempt) handOver() error {
	if g.User == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(g.Folders.Top, "home"), 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(g.Folders.Top, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, g.User, g.User))
	})
}

// reading returns the folder path as the agent may read it. If the program runs as another user,
// the agent is root: it follows no link out of the task's folder and reads only files of that user.
func (g *Attempt) reading(path string) confined.Folder {
	if g.User == 0 {
		return confined.Folder{Path: path}
	}
	return confined.Folder{Path: path, Within: g.Folders.Top, Owner: g.User}
}

// refuseLocalStores refuses stores in local folders if the agent is root and programs are not.
// Otherwise the job could read and write through the agent whatever root can.
func (g *Attempt) refuseLocalStores() error {
	if g.User == 0 {
		return nil
	}
	for _, address := range []string{g.Task.Checkpoint.URL, g.Task.OutputsURL, g.Task.Workdir} {
		if u, err := url.Parse(address); err == nil && u.Scheme == "file" {
			return fmt.Errorf("%s: a local folder cannot be a store if programs run as separate users: use "+
				"the server's store or a bucket, or set users: same for the engine", address)
		}
	}
	return nil
}

// EndAll ends the processes that the task left: all processes of its own user, or, without one,
// orphans of its programs unless they could belong to another task.
func (g *Attempt) EndAll() error {
	switch {
	case g.User != 0:
		return program.KillUser(g.User)
	case g.Sole && g.Only != nil && g.Only():
		return program.KillOrphans()
	}
	return nil
}

// baseEnv returns the machine's environment, with a home folder for the task's own user.
func (g *Attempt) baseEnv() []string {
	if g.User == 0 {
		return g.Environ
	}
	home := filepath.Join(g.Folders.Top, "home")
	return append(slices.Clone(g.Environ), "HOME="+home, "TMPDIR="+home, "USER=task", "LOGNAME=task")
}

// withhold drops the variables of the submitter's shell if the task has its own user, who cannot
// read the submitter's files. It lists in the log the variables that the job requested and does not
// get.
func (g *Attempt) withhold(output io.Writer) error {
	if g.User != 0 {
		for _, name := range slices.Sorted(maps.Keys(g.Task.Shell)) {
			if !slices.Contains(api.Shell, name) {
				g.Task.Withheld = append(g.Task.Withheld, name)
			}
		}
		g.Task.Shell = nil
	}
	if len(g.Task.Withheld) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(output, "scrimp: not set on this machine, which does not share the files of the shell that "+
		"submitted: %s (inherit): write values for it under env or secrets\n", strings.Join(g.Task.Withheld, ", "))
	return err
}

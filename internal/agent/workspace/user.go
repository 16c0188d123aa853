package workspace

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

// AssignUser assigns a user to the task and lets only that user into the task's folder, if programs run as separate
// users. Other users can pass the folders above it but not list them.
func (w *Workspace) AssignUser() (err error) {
	if ok, _ := place.Separate(w.machine.TaskUser, w.machine.MachineDir); !ok {
		return nil
	}
	if w.User, err = place.ClaimUser(filepath.Dir(w.Folders.Own), w.Task.Attempt); err != nil {
		return err
	}
	w.Folders.Log = filepath.Join(w.Folders.Own, "log") // the program cannot replace this file
	return errors.Join(os.Chmod(w.machine.MachineDir, 0o711), os.Chmod(filepath.Dir(w.Folders.Top), 0o711))
}

// MakeFolders makes the task's folder. It empties the folder of a task with its own user, because a
// set-up that a previous agent ran may have left processes, or links where the agent is about to
// write.
func (w *Workspace) MakeFolders() error {
	if w.User != 0 {
		if err := w.EndAll(); err != nil {
			return err
		}
		if err := errors.Join(place.RemoveAll(w.Folders.Top), os.RemoveAll(w.setupDone())); err != nil {
			return err
		}
	}
	return os.MkdirAll(w.Folders.Work, 0o700)
}

// HandOver gives the task's folder to its user, before any of the user's programs runs.
func (w *Workspace) HandOver() error {
	if w.User == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(w.Folders.Top, "home"), 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(w.Folders.Top, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, w.User, w.User))
	})
}

// Reading returns the folder path as the agent may read it. If the program runs as another user,
// the agent is root: it follows no link out of the task's folder and reads only files of that user.
func (w *Workspace) Reading(path string) confined.Folder {
	if w.User == 0 {
		return confined.Folder{Path: path}
	}
	return confined.Folder{Path: path, Within: w.Folders.Top, Owner: w.User}
}

// RefuseLocalStores refuses stores in local folders if the agent is root and programs are not.
// Otherwise the job could read and write through the agent whatever root can.
func (w *Workspace) RefuseLocalStores() error {
	if w.User == 0 {
		return nil
	}
	addresses := []string{w.Task.Checkpoint.URL, w.Task.OutputsURL, w.Task.Workdir}
	for _, in := range w.Task.Data {
		addresses = append(addresses, in.Path)
	}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil && u.Scheme == "file" {
			return fmt.Errorf("%s: a local folder cannot be a store or an input if programs run as separate users: use "+
				"the server's store or a bucket, or set users: same for the engine", address)
		}
	}
	return nil
}

// EndAll ends the processes that the task left: all processes of its own user, or, without one,
// orphans of its programs unless they could belong to another task.
func (w *Workspace) EndAll() error {
	switch {
	case w.User != 0:
		return program.KillUser(w.User)
	case w.machine.Sole && w.Only != nil && w.Only():
		return program.KillOrphans()
	}
	return nil
}

// BaseEnv returns the machine's environment, with a home folder for the task's own user.
func (w *Workspace) BaseEnv() []string {
	if w.User == 0 {
		return w.machine.Environ
	}
	home := filepath.Join(w.Folders.Top, "home")
	return append(slices.Clone(w.machine.Environ), "HOME="+home, "TMPDIR="+home, "USER=task", "LOGNAME=task")
}

// Withhold drops the variables of the submitter's shell if the task has its own user, who cannot
// read the submitter's files. It lists in the log the variables that the job requested and does not
// get.
func (w *Workspace) Withhold(output io.Writer) error {
	if w.User != 0 {
		for _, name := range slices.Sorted(maps.Keys(w.Task.Shell)) {
			if !slices.Contains(api.Shell, name) {
				w.Task.Withheld = append(w.Task.Withheld, name)
			}
		}
		w.Task.Shell = nil
	}
	if len(w.Task.Withheld) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(output, "scrimp: not set on this machine, which does not share the files of the shell that "+
		"submitted: %s (inherit): write values for it under env or secrets\n", strings.Join(w.Task.Withheld, ", "))
	return err
}

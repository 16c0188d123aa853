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

// openTo gives the task a user, and lets that user in and nobody else: what lies above its
// folder is passed, not read.
func (g *Attempt) openTo() (err error) {
	if g.User, err = place.ClaimUser(filepath.Dir(g.Folders.Own), g.Task.Attempt); err != nil {
		return err
	}
	g.Folders.Log = filepath.Join(g.Folders.Own, "log") // where the program cannot put another file in its place
	return errors.Join(os.Chmod(g.MachineDir, 0o711), os.Chmod(filepath.Dir(g.Folders.Top), 0o711))
}

// beginAnew makes the task's folder, empty where it has a user: a set-up that an agent before
// us ran may have left processes, and links where the agent is about to write.
func (g *Attempt) beginAnew() error {
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

// handOver gives the task's folder to its user, before anything of the user's has run.
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

// reading is how the agent reads what the program writes. Where that is another user the
// agent is root: it follows no link out of the task's folder and reads nobody else's files.
func (g *Attempt) reading(path string) confined.Folder {
	if g.User == 0 {
		return confined.Folder{Path: path}
	}
	return confined.Folder{Path: path, Within: g.Folders.Top, Owner: g.User}
}

// sharesNoFolder refuses stores that are folders of the machine where the agent is root and
// programs are not: with one the job would read and write what root can.
func (g *Attempt) sharesNoFolder() error {
	if g.User == 0 {
		return nil
	}
	for _, address := range []string{g.Task.Checkpoint.URL, g.Task.OutputsURL, g.Task.Workdir} {
		if u, err := url.Parse(address); err == nil && u.Scheme == "file" {
			return fmt.Errorf("%s: a folder of the machine cannot be a store where programs run as users of their own: take "+
				"the server's store or a bucket, or set users: same for the engine", address)
		}
	}
	return nil
}

// EndAll ends what is left of the task: all that its user has, and where it has none what its programs left
// behind, as far as no other task's can be among that.
func (g *Attempt) EndAll() error {
	switch {
	case g.User != 0:
		return program.KillUser(g.User)
	case g.Sole && g.Only != nil && g.Only():
		return program.KillOrphans()
	}
	return nil
}

// home is the machine's environment, with the folders of a user who has none.
func (g *Attempt) home() []string {
	if g.User == 0 {
		return g.Environ
	}
	home := filepath.Join(g.Folders.Top, "home")
	return append(slices.Clone(g.Environ), "HOME="+home, "TMPDIR="+home, "USER=task", "LOGNAME=task")
}

// withhold keeps what is of the submitter's shell from a user of the task's own, who cannot read the
// submitter's files, and says which of the names that the job asked for it does not get.
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

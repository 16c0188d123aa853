package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"scrimp/internal/wire/api"
)

// Remove removes all that a task had on the machine.
func (f Folders) Remove() error {
	return errors.Join(RemoveAll(f.Top), RemoveAll(f.Own))
}

// RemoveAll removes a folder, also where a program left folders in it that nobody may
// write to.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(path, 0o700) // a folder must be entered to be emptied
		}
		return err
	})
	return os.RemoveAll(dir)
}

// Folders are the places on the machine's disk.
type Folders struct {
	Own        string // the agent's, of this task
	Top        string // of the task, with all that follows
	Work       string // the program's working folder
	Checkpoint string // SCRIMP_CHECKPOINT_DIR
	Log        string // the program's output
	Progress   string // SCRIMP_PROGRESS_FILE
	Token      string // file of the token for Kubeflow's form
}

// LayOut says where everything of assignment a lies below folder machine.
func LayOut(machine string, a api.Assignment) Folders {
	top := TopOf(machine, a.Attempt)
	f := Folders{
		Own:      filepath.Join(Tasks(machine), a.Attempt),
		Top:      top,
		Work:     filepath.Join(top, "work"),
		Log:      filepath.Join(top, "log"),
		Progress: filepath.Join(top, "progress.jsonl"),
		Token:    filepath.Join(top, "trainer-token"),
	}
	f.Checkpoint = filepath.Join(top, "checkpoint")
	if d := a.Checkpoint.Dir; d != "" {
		f.Checkpoint = below(f.Work, d)
	}
	if p := a.Progress.File; p != "" {
		f.Progress = below(f.Work, p)
	}
	return f
}

// below returns path as it is where it is absolute, and in folder dir else.
func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Tasks holds what is the agent's of each task, in a folder of the attempt's name.
func Tasks(machine string) string { return filepath.Join(OwnFolder(machine), "tasks") }

// OwnFolder is the agent's own below that of the machine: no program reads it where
// programs run as another user.
func OwnFolder(machine string) string { return filepath.Join(machine, "agent") }

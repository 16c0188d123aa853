package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"scrimp/internal/wire/api"
)

// Remove removes all files of a task from the machine.
func (f Folders) Remove() error {
	return errors.Join(RemoveAll(f.Top), RemoveAll(f.Own))
}

// RemoveAll removes a folder, even if a program left folders in it without write permission.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(path, 0o700) // removing files in a folder requires write and search permission
		}
		return err
	})
	return os.RemoveAll(dir)
}

// Folders holds the paths of one task on the machine's disk.
type Folders struct {
	Own        string // the agent's own folder for this task
	Top        string // the task's folder, parent of the following paths
	Work       string // the program's working folder
	Checkpoint string // SCRIMP_CHECKPOINT_DIR
	Log        string // the program's output
	Progress   string // SCRIMP_PROGRESS_FILE
	Token      string // file with the token, for Kubeflow's API
}

// LayOut returns the paths of assignment a below the machine's folder.
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

// Input returns the folder of an input that the agent brings.
func (f Folders) Input(name string) string { return filepath.Join(f.Top, "data", name) }

// below returns path if it is absolute, and otherwise path in folder dir.
func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Tasks returns the parent of the agent's own folders of tasks, which are named after the attempts.
func Tasks(machine string) string { return filepath.Join(OwnFolder(machine), "tasks") }

// OwnFolder returns the agent's own folder on the machine. Programs that run as another user cannot read it.
func OwnFolder(machine string) string { return filepath.Join(machine, "agent") }

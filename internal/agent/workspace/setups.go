package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/internal/agent/place"
	"scrimp/internal/agent/residue"
	"scrimp/internal/agent/setup"
	"scrimp/internal/lib/durable"
)

// Limits on the time to copy the result of a set-up, because the program waits for the copy:
// 1/copyShare of the time that the set-up took, but at least copyLeast.
const (
	copyShare = 2
	copyLeast = 2 * time.Second
)

// kept links this task's set-up to the cache of set-ups.
type kept struct {
	key   string // cache key; empty: use and keep nothing
	marks string // digest of the files beside the trees, taken before the set-up
}

// trees returns the folders that a set-up may change.
func (w *Workspace) trees() []setup.Tree {
	except, err := filepath.Rel(w.Folders.Work, w.Folders.Checkpoint)
	if err != nil || !filepath.IsLocal(except) {
		except = ""
	}
	trees := []setup.Tree{{Name: "work", Path: w.Folders.Work, Except: except}}
	if w.User != 0 {
		trees = append(trees, setup.Tree{Name: "home", Path: filepath.Join(w.Folders.Top, "home")})
	}
	if _, err := os.Lstat(w.Venv()); err == nil || w.python {
		trees = append(trees, setup.Tree{Name: "venv", Path: w.Venv()})
	}
	return trees
}

// setupDone returns the path of the file that marks a finished set-up.
func (w *Workspace) setupDone() string { return filepath.Join(w.Folders.Own, "setup.done") }

// isSetUp reports whether the set-up of this task finished before the agent was restarted.
func (w *Workspace) isSetUp() bool {
	b, err := os.ReadFile(w.setupDone())
	return err == nil && string(b) == w.Task.Setup
}

// reuse fills the task's folders with the kept result of the same set-up, if there is one. It
// expects only the uploaded files in the work folder.
func (w *Workspace) reuse(ctx context.Context, from Fetcher, output *os.File) error {
	if w.machine.Setups == nil || !place.Repeats(w.Task) || w.isSetUp() {
		return nil
	}
	key, err := w.setupKey(ctx)
	if err != nil {
		w.machine.Log.Info("skip the search for a kept set-up", "why", err)
		return context.Cause(ctx)
	}
	w.kept.key = key
	e, err := w.machine.Setups.Restore(ctx, key, w.machine.Now(), w.trees())
	switch {
	case errors.Is(err, setup.ErrNone):
		return nil
	case err != nil: // some files were copied: start again from empty folders
		w.machine.Log.Warn("restore a kept set-up", "error", err)
		w.kept.key = ""
		return errors.Join(context.Cause(ctx), w.startOver(), w.download(ctx, from))
	}
	_, err = fmt.Fprintf(output, "scrimp: set-up skipped: the same one ran on this machine at %s (%v)\n",
		e.Made.UTC().Format(time.RFC3339), e.Took.Round(time.Millisecond))
	return errors.Join(err, durable.Replace(w.setupDone(), []byte(w.Task.Setup)))
}

// startOver empties the folders that a set-up may have changed.
func (w *Workspace) startOver() error {
	if err := w.EndAll(); err != nil { // processes of the previous agent
		return err
	}
	for _, t := range w.trees() {
		if err := place.RemoveAll(t.Path); err != nil {
			return err
		}
	}
	return os.MkdirAll(w.Folders.Work, 0o700)
}

// setupKey returns the cache key of the set-up. Two set-ups have the same key if they run the same
// command in the same folder, with the same work folder content and the same environment.
func (w *Workspace) setupKey(ctx context.Context) (string, error) {
	if err := w.checkSeparable(); err != nil {
		return "", err
	}
	content, err := setup.Content(ctx, w.Folders.Work)
	if err != nil {
		return "", err
	}
	a := w.Task
	a.Job, a.Attempt, a.Epoch, a.Checkpoint.Interval, a.Addresses = "", "", 0, 0, nil
	env := place.Environment{Base: w.BaseEnv(), Borrowed: w.machine.Borrowed, Task: a,
		Instance: w.machine.Instance, Folders: w.Folders, Accelerators: w.Accelerators,
		Inputs: w.inputFolders()}.Variables()
	env = slices.DeleteFunc(env, func(kv string) bool { // includes variables that the server derives from the job's name
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(place.OfOneAttempt, name)
	})
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "2 %q %q %s %q %t %t %q\n", a.Setup, a.Workdir, content, w.Folders.Work, w.User != 0,
		w.python, env)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// checkSeparable returns an error if the checkpoint folder cannot be separated from the set-up's own files.
func (w *Workspace) checkSeparable() error {
	rel := w.trees()[0].Except
	switch rel {
	case ".":
		return errors.New("the checkpoint folder is the work folder")
	case "":
		return nil
	}
	at := w.Folders.Work
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !info.IsDir() {
			return cmp.Or(err, fmt.Errorf("%s, a parent of the checkpoint folder, is not a folder", at))
		}
	}
	return nil
}

// beside returns a digest of the files outside the trees that a set-up could change.
func (w *Workspace) beside() (string, error) {
	marks, err := setup.Marks(w.Folders.Checkpoint)
	if err != nil {
		return "", err
	}
	names, err := os.ReadDir(w.Folders.Top)
	for _, n := range names {
		marks += "\n" + n.Name()
	}
	return marks, err
}

// beforeSetup records the state of the files that a set-up must not change if it is to be kept.
func (w *Workspace) beforeSetup() {
	marks, err := w.beside()
	if err != nil {
		w.machine.Log.Info("the set-up is not kept", "why", err)
		w.kept.key = ""
	}
	w.kept.marks = marks
}

// keepSetup copies the result of a set-up before the program can change it. took is how long the set-up ran.
// The program starts even if the copy fails.
func (w *Workspace) keepSetup(ctx context.Context, took time.Duration) {
	if w.kept.key == "" {
		return
	}
	err := func() error {
		if err := w.EndAll(); err != nil {
			return err
		}
		marks, err := w.beside()
		if err == nil && marks != w.kept.marks {
			err = errors.New("it changed the checkpoint folder, or made files beside the work folder")
		}
		if err == nil && w.User != 0 {
			err = residue.NoneShared(w.User, w.machine.MachineDir)
		}
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, max(copyLeast, took/copyShare), errors.New("the copy took too long"))
		defer cancel()
		return w.machine.Setups.Keep(ctx, setup.Entry{Key: w.kept.key, Made: w.machine.Now().UTC(), Took: took},
			w.trees())
	}()
	if err != nil {
		w.machine.Log.Info("the set-up is not kept", "why", err)
	}
}

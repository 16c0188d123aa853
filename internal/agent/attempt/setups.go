package attempt

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
func (g *Attempt) trees() []setup.Tree {
	except, err := filepath.Rel(g.Folders.Work, g.Folders.Checkpoint)
	if err != nil || !filepath.IsLocal(except) {
		except = ""
	}
	trees := []setup.Tree{{Name: "work", Path: g.Folders.Work, Except: except}}
	if g.User != 0 {
		trees = append(trees, setup.Tree{Name: "home", Path: filepath.Join(g.Folders.Top, "home")})
	}
	if _, err := os.Lstat(g.venv()); err == nil || g.python {
		trees = append(trees, setup.Tree{Name: "venv", Path: g.venv()})
	}
	return trees
}

// setupDone returns the path of the file that marks a finished set-up.
func (g *Attempt) setupDone() string { return filepath.Join(g.Folders.Own, "setup.done") }

// isSetUp reports whether the set-up of this task finished before the agent was restarted.
func (g *Attempt) isSetUp() bool {
	b, err := os.ReadFile(g.setupDone())
	return err == nil && string(b) == g.Task.Setup
}

// reuse fills the task's folders with the kept result of the same set-up, if there is one. It
// expects only the uploaded files in the work folder.
func (g *Attempt) reuse(ctx context.Context, output *os.File) error {
	if g.Setups == nil || !place.Repeats(g.Task) || g.isSetUp() {
		return nil
	}
	key, err := g.setupKey(ctx)
	if err != nil {
		g.Log.Info("skip the search for a kept set-up", "why", err)
		return context.Cause(ctx)
	}
	g.kept.key = key
	e, err := g.Setups.Restore(ctx, key, g.Now(), g.trees())
	switch {
	case errors.Is(err, setup.ErrNone):
		return nil
	case err != nil: // some files were copied: start again from empty folders
		g.Log.Warn("restore a kept set-up", "error", err)
		g.kept.key = ""
		return errors.Join(context.Cause(ctx), g.startOver(), g.download(ctx))
	}
	_, err = fmt.Fprintf(output, "scrimp: set-up skipped: the same one ran on this machine at %s (%v)\n",
		e.Made.UTC().Format(time.RFC3339), e.Took.Round(time.Millisecond))
	return errors.Join(err, durable.Replace(g.setupDone(), []byte(g.Task.Setup)))
}

// startOver empties the folders that a set-up may have changed.
func (g *Attempt) startOver() error {
	if err := g.EndAll(); err != nil { // processes of the previous agent
		return err
	}
	for _, t := range g.trees() {
		if err := place.RemoveAll(t.Path); err != nil {
			return err
		}
	}
	return os.MkdirAll(g.Folders.Work, 0o700)
}

// setupKey returns the cache key of the set-up. Two set-ups have the same key if they run the same
// command in the same folder, with the same work folder content and the same environment.
func (g *Attempt) setupKey(ctx context.Context) (string, error) {
	if err := g.checkSeparable(); err != nil {
		return "", err
	}
	content, err := setup.Content(ctx, g.Folders.Work)
	if err != nil {
		return "", err
	}
	a := g.Task
	a.Job, a.Attempt, a.Epoch, a.Checkpoint.Interval, a.Addresses = "", "", 0, 0, nil
	env := place.Environment{Base: g.baseEnv(), Borrowed: g.Borrowed, Task: a, Instance: g.Instance, Folders: g.Folders,
		Accelerators: g.Accelerators}.Variables()
	env = slices.DeleteFunc(env, func(kv string) bool { // includes variables that the server derives from the job's name
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(place.OfOneAttempt, name)
	})
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "2 %q %q %s %q %t %t %q\n", a.Setup, a.Workdir, content, g.Folders.Work, g.User != 0,
		g.python, env)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// checkSeparable returns an error if the checkpoint folder cannot be separated from the set-up's own files.
func (g *Attempt) checkSeparable() error {
	rel := g.trees()[0].Except
	switch rel {
	case ".":
		return errors.New("the checkpoint folder is the work folder")
	case "":
		return nil
	}
	at := g.Folders.Work
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
func (g *Attempt) beside() (string, error) {
	marks, err := setup.Marks(g.Folders.Checkpoint)
	if err != nil {
		return "", err
	}
	names, err := os.ReadDir(g.Folders.Top)
	for _, n := range names {
		marks += "\n" + n.Name()
	}
	return marks, err
}

// beforeSetup records the state of the files that a set-up must not change if it is to be kept.
func (g *Attempt) beforeSetup() {
	marks, err := g.beside()
	if err != nil {
		g.Log.Info("the set-up is not kept", "why", err)
		g.kept.key = ""
	}
	g.kept.marks = marks
}

// keepSetup copies the result of a set-up, which took so long, before the program can change it.
// The program starts even if the copy fails.
func (g *Attempt) keepSetup(ctx context.Context, took time.Duration) {
	if g.kept.key == "" {
		return
	}
	err := func() error {
		if err := g.EndAll(); err != nil {
			return err
		}
		marks, err := g.beside()
		if err == nil && marks != g.kept.marks {
			err = errors.New("it changed the checkpoint folder, or made files beside the work folder")
		}
		if err == nil && g.User != 0 {
			err = residue.NoneShared(g.User, g.MachineDir)
		}
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, max(copyLeast, took/copyShare), errors.New("the copy took too long"))
		defer cancel()
		return g.Setups.Keep(ctx, setup.Entry{Key: g.kept.key, Made: g.Now().UTC(), Took: took}, g.trees())
	}()
	if err != nil {
		g.Log.Info("the set-up is not kept", "why", err)
	}
}

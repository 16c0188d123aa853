// Package workspace holds what a task finds on its machine: its folders, its user, its work folder and the result of
// its set-up.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/agent/place"
	"scrimp/internal/agent/setup"
	"scrimp/internal/agent/venv"
	"scrimp/internal/agent/wire"
	"scrimp/internal/lib/durable"
	"scrimp/internal/wire/api"
)

// Machine describes the machine of a workspace and its agent.
type Machine struct {
	Instance   string   // the provider's id of the machine
	MachineDir string   // the machine's own folder, on its disk
	Environ    []string // the machine's environment, NAME=value; the program gets it without SCRIMP_*
	Borrowed   bool     // the environment belongs to whoever started the server
	TaskUser   string   // place.UserAuto or place.UserSame
	Sole       bool     // nothing else in this process starts programs
	Now        func() time.Time
	Log        *slog.Logger
	Setups     *setup.Cache     // results of set-ups on this machine; nil: keep none
	Inputs     *datacache.Cache // files of inputs; nil: the machine cannot bring any
}

// Workspace is the place of one task on a machine. Its methods are called in this order: AssignUser, MakeFolders,
// RefuseLocalStores, Withhold, Fill, MakeCheckpointFolder, HandOver, SetUp, RecordWork, MarkRan, OutputNames and
// LeaveData.
type Workspace struct {
	Task    api.Assignment
	Folders place.Folders
	User    int // user id of the program; 0: the agent's own
	// Accelerators is the number of the machine's accelerators; 0: unknown.
	Accelerators int
	Only         func() bool // reports whether no other task runs on the machine; nil: unknown

	machine Machine
	kept    kept
	holds   []*datacache.Hold  // on the inputs
	streams []stream           // inputs that the program reads while they arrive
	read    []api.Brought      // reads of the inputs, until the server has them
	python  bool               // the set-up may install Python packages
	before  map[string]version // the work folder before the program starts, if the job keeps written files
}

// New makes the folders of a task.
func New(m Machine, a api.Assignment) (*Workspace, error) {
	if name := filepath.Base(a.Attempt); name != a.Attempt || !filepath.IsLocal(name) || name == "." {
		return nil, fmt.Errorf("the attempt's name %q is not a valid folder name", a.Attempt)
	}
	if err := place.TakeSlot(m.MachineDir, a); err != nil {
		return nil, err
	}
	f := place.LayOut(m.MachineDir, a)
	if err := errors.Join(os.MkdirAll(f.Own, 0o700), os.MkdirAll(f.Top, 0o700)); err != nil {
		return nil, err
	}
	return &Workspace{Task: a, Folders: f, machine: m}, nil
}

// Cache returns the machine's cache of files by content; nil: it has none.
func (w *Workspace) Cache() *datacache.Cache { return w.machine.Inputs }

// MakeCheckpointFolder makes the checkpoint folder and checks that the agent can write to it.
func (w *Workspace) MakeCheckpointFolder() error {
	if err := w.Reading(w.Folders.Checkpoint).Make(); err != nil {
		return fmt.Errorf("make checkpoint folder (checkpoint.dir): %w", err)
	}
	return writable(w.Folders.Checkpoint)
}

// writable returns an error if the agent cannot write to a folder.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".scrimp-*.tmp")
	if err != nil {
		return fmt.Errorf("cannot write to checkpoint folder %s: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// SetupError reports a set-up command that failed.
type SetupError struct{ Status int }

func (e SetupError) Error() string {
	return fmt.Sprintf("set-up failed with exit status %d: its output is in the log", e.Status)
}

// Fetcher writes the uploaded work folder at an address to a folder.
type Fetcher interface {
	Fetch(ctx context.Context, address, dir string) error
	// FromCache returns what Fetch took from the machine's cache.
	FromCache() datacache.Copied
}

// Fill fills the folders of the inputs, and the work folder with the uploaded files, or with a kept result of the same
// set-up.
func (w *Workspace) Fill(ctx context.Context, from Fetcher, output *os.File) error {
	if err := w.bringData(ctx, output); err != nil {
		return err
	}
	if w.isSetUp() { // the agent was restarted: keep what the set-up changed
		return nil
	}
	if place.Repeats(w.Task) {
		if err := w.startOver(); err != nil {
			return err
		}
	}
	begin := w.machine.Now()
	if err := w.download(ctx, from); err != nil {
		return err
	}
	if err := w.countWork(from.FromCache(), max(0, w.machine.Now().Sub(begin)), output); err != nil {
		return err
	}
	w.python = w.Task.Setup != "" && venv.Needed(w.Task.Setup, w.Folders.Work)
	return w.reuse(ctx, from, output)
}

func (w *Workspace) download(ctx context.Context, from Fetcher) error {
	if w.Task.Workdir == "" {
		return nil
	}
	if err := from.Fetch(ctx, w.Task.Workdir, w.Folders.Work); err != nil {
		if errors.Is(err, wire.ErrBad) {
			err = fmt.Errorf("%w: %w", err, ErrEverywhere)
		}
		return fmt.Errorf("fetch work folder: %w", err)
	}
	return nil
}

// SetUp runs the set-up command once for each task on the machine, and keeps the result.
func (w *Workspace) SetUp(ctx context.Context, env []string, output *os.File) error {
	if w.Task.Setup == "" || w.isSetUp() {
		return nil
	}
	begun := w.machine.Now()
	if w.python {
		if err := w.makeVenv(ctx, env, output); err != nil {
			return fmt.Errorf("make the virtual environment: %w", err)
		}
	}
	w.beforeSetup()
	e, err := w.runOnce(ctx, []string{"/bin/sh", "-c", w.Task.Setup}, venv.In(w.Venv(), env), output)
	if err != nil {
		return err
	}
	if e.Status != 0 {
		return SetupError{e.Status}
	}
	w.keepSetup(ctx, w.machine.Now().Sub(begun))
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return durable.Replace(w.setupDone(), []byte(w.Task.Setup))
}

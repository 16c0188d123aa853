package workspace

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"scrimp/internal/agent/place"
	"scrimp/internal/agent/program"
	"scrimp/internal/agent/venv"
)

// Venv returns the folder of the task's virtual environment. A set-up that may install packages
// gets one, so it never changes the Python of a user or of the machine.
func (w *Workspace) Venv() string { return filepath.Join(w.Folders.Top, "venv") }

// makeVenv makes the task's virtual environment with the Python that the set-up would find. A
// machine without Python has nothing to protect.
func (w *Workspace) makeVenv(ctx context.Context, env []string, output *os.File) error {
	e, err := w.runOnce(ctx, venv.Command(w.Venv()), env, output)
	if err != nil || e.Status == 0 {
		return err
	}
	if err := errors.Join(place.RemoveAll(w.Venv()), os.Mkdir(w.Venv(), 0o700)); err != nil {
		return err
	}
	_, err = io.WriteString(output, "scrimp: set-up: no virtual environment was made, for the reason above: pip installs "+
		"nothing outside one here\n")
	return err
}

// runOnce runs a command as the task's user and waits for it to end.
func (w *Workspace) runOnce(ctx context.Context, args, env []string, output *os.File) (e program.Exit, err error) {
	p, err := program.Start(program.Spec{Args: args, Dir: w.Folders.Work, Env: env, Output: output, User: w.User,
		Mark: program.NewMark()})
	if err != nil {
		return e, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	if err := p.Close(); err != nil {
		return e, err
	}
	return p.Exit(), context.Cause(ctx)
}

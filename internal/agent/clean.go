package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"scrimp/internal/agent/attempt"
	"scrimp/internal/agent/host"
	"scrimp/internal/agent/place"
	"scrimp/internal/agent/program"
	"scrimp/internal/agent/residue"
	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
)

// errTaskEnded cancels a waiting pull, because its request describes the machine before the task ended.
var errTaskEnded = errors.New("a task ended meanwhile")

// pull asks the server for tasks and tells it whether the machine is clean.
func (d *daemon) pull(ctx context.Context) (api.Pulled, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.mu.Lock()
	d.repull = func() { cancel(errTaskEnded) }
	d.mu.Unlock()
	left, clean := d.leftovers(), d.clean(ctx)
	p, err := d.machine.Pull(ctx, api.Pull{Running: d.runs(), Version: d.Version, Build: d.Build, Clean: clean})
	if err != nil && errors.Is(context.Cause(ctx), errTaskEnded) {
		return p, errTaskEnded
	}
	if err == nil && p.Wire == api.Wire { // a server of another version lists no tasks
		d.drop(left, p.Tasks)
	}
	return p, err
}

// clean reports whether no task runs and, as far as the agent can show, nothing of an earlier one
// is left. It ends leftover processes.
func (d *daemon) clean(ctx context.Context) bool {
	d.mu.Lock()
	idle, shown := len(d.running) == 0, d.shown
	d.mu.Unlock()
	if !idle || d.keep {
		return false
	}
	if shown {
		return true
	}
	if err := d.checkClean(ctx); err != nil {
		if ctx.Err() == nil && !d.warned {
			d.warned = true
			d.Log.Warn("cannot show that the machine is clean: it accepts no more tasks", "why", err)
		}
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shown, d.warned = true, false
	return true
}

// checkClean returns an error if something of earlier tasks is left, or could be.
func (d *daemon) checkClean(ctx context.Context) error {
	why, err := os.ReadFile(d.stainFile())
	if err == nil {
		return errors.New(string(why))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if left := d.leftovers(); len(left) > 0 {
		return fmt.Errorf("the server has not received everything of %s", strings.Join(left, ", "))
	}
	last, err := os.ReadFile(d.userFile())
	switch {
	case errors.Is(err, fs.ErrNotExist): // no task has run since the machine was clean
		return nil
	case err != nil:
		return err
	}
	apart, _ := d.separate()
	if boot, process, _ := strings.Cut(string(last), " "); boot == host.BootID() && process != program.Self() && !apart {
		return errors.New("the agent was restarted: it does not know what earlier programs left behind")
	}
	d.accelerators.Before() // it starts a program too
	if err := d.endStrays(); err != nil {
		return err
	}
	if err := d.accelerators.Released(ctx); err != nil {
		return err
	}
	return os.Remove(d.userFile())
}

// endStrays ends the processes that ended programs left behind.
func (d *daemon) endStrays() error {
	switch {
	case d.Sole:
		return program.KillDescendants()
	case host.BootID() == "":
		return program.ErrBlind
	}
	return nil // each task ended them by their mark
}

// collect reaps orphans of programs periodically.
func (d *daemon) collect(ctx context.Context) {
	for d.Sole && wait.For(ctx, collectEvery) == nil {
		program.CollectOrphans()
	}
}

// userFile returns the path of a file that names the process that runs tasks. It exists from the
// first task until the machine is clean again: only that process can find everything that its tasks
// left.
func (d *daemon) userFile() string { return filepath.Join(place.OwnFolder(d.MachineDir), "unclean") }

// stainFile returns the path of a file with the reason why the machine can never be clean again.
func (d *daemon) stainFile() string {
	return filepath.Join(place.OwnFolder(d.MachineDir), "never-clean")
}

// use records that a task is about to run.
func (d *daemon) use(g *attempt.Attempt) error {
	d.accelerators.Before()
	d.mu.Lock()
	d.shown = false
	d.mu.Unlock()
	if err := d.stain(g); err != nil {
		return err
	}
	return os.WriteFile(d.userFile(), []byte(host.BootID()+" "+program.Self()), 0o600)
}

// stain records that a task writes to a folder of the machine's owner, which the agent does not
// clean because the owner may want the files.
func (d *daemon) stain(g *attempt.Attempt) error {
	if g.User != 0 { // this user can write only to shared folders, which the agent cleans
		return nil
	}
	outside := map[string]string{"checkpoint.dir": g.Folders.Checkpoint, "progress.file": g.Folders.Progress}
	for what, path := range outside {
		if rel, err := filepath.Rel(g.Folders.Top, path); err == nil && filepath.IsLocal(rel) {
			continue
		}
		why := fmt.Sprintf("%s of %s is outside of the task's folder, and stays: %s", what, g.Task.Attempt, path)
		if err := durable.Replace(d.stainFile(), []byte(why)); err != nil {
			return err
		}
	}
	return nil
}

// leftovers returns the attempts that have a folder on this machine but do not run.
func (d *daemon) leftovers() []string {
	found := map[string]bool{}
	for _, dir := range []string{place.Tasks(d.MachineDir), filepath.Join(d.MachineDir, "tasks")} {
		names, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			found[dir] = true // no answer of the server removes this entry
		}
		for _, n := range names {
			found[n.Name()] = true
		}
	}
	slots, _ := os.ReadDir(place.Slots(d.MachineDir)) // fails if no task used a slot
	known := map[string]bool{}
	for attempt := range found {
		known[place.TopOf(d.MachineDir, attempt)] = true
	}
	for _, s := range slots { // its own folder is gone: the agent was killed during the removal
		if path := filepath.Join("slots", s.Name()); !known[filepath.Join(d.MachineDir, path)] {
			found[path] = true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for attempt := range d.running {
		delete(found, attempt)
	}
	return slices.Sorted(maps.Keys(found))
}

// drop removes the files of attempts that the server did not assign again: it knows their end, or
// no longer wants them.
func (d *daemon) drop(left []string, tasks []api.Assignment) {
	for _, attempt := range left {
		if d.keep || slices.ContainsFunc(tasks, func(a api.Assignment) bool { return a.Attempt == attempt }) {
			continue
		}
		f := place.Folders{Own: filepath.Join(place.Tasks(d.MachineDir), attempt), Top: place.TopOf(d.MachineDir, attempt)}
		slot := filepath.Dir(attempt) == "slots"
		if slot {
			f.Top = filepath.Join(d.MachineDir, attempt)
		}
		var err error
		if user := place.ClaimedUser(f.Own); user != 0 && !slot {
			err = residue.EndUser(user, d.MachineDir)
		}
		if err == nil { // no process is left that could plant a link
			err = f.Remove()
		}
		if err != nil {
			d.Log.Warn("remove what is left of a task", "attempt", attempt, "error", err)
			continue
		}
		d.mu.Lock()
		d.dropped[attempt] = true
		d.mu.Unlock()
	}
}

// cleanUp ends the task's processes and removes its files. Reports that the server has not received
// stay on disk until it is reachable.
func (d *daemon) cleanUp(g *attempt.Attempt, fenced bool) error {
	if d.keep {
		return nil
	}
	err := errors.Join(g.Unended, g.EndAll())
	if g.User != 0 {
		err = errors.Join(err, residue.EndUser(g.User, d.MachineDir))
	}
	if err == nil && (g.Box.Empty() || fenced) { // no process is left that could plant a link
		err = g.Folders.Remove()
	}
	return err
}

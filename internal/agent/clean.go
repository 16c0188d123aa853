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

// errTaskEnded cuts a pull short that waits: what it said of the machine is no longer so.
var errTaskEnded = errors.New("a task ended meanwhile")

// pull asks for something to do, and says whether the machine is clean.
func (d *daemon) pull(ctx context.Context) (api.Pulled, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.mu.Lock()
	d.anew = func() { cancel(errTaskEnded) }
	d.mu.Unlock()
	left, clean := d.leftovers(), d.clean(ctx)
	p, err := d.machine.Pull(ctx, api.Pull{Running: d.runs(), Version: d.Version, Build: d.Build, Clean: clean})
	if err != nil && errors.Is(context.Cause(ctx), errTaskEnded) {
		return p, errTaskEnded
	}
	if err == nil && p.Wire == api.Wire { // another answers an agent of this one without its tasks
		d.drop(left, p.Tasks)
	}
	return p, err
}

// clean reports whether no task runs and nothing of an earlier one is left, as far as that
// can be shown. It ends what it finds of processes.
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
	if err := d.show(ctx); err != nil {
		if ctx.Err() == nil && !d.warned {
			d.warned = true
			d.Log.Warn("the machine cannot be shown clean: it takes no other task", "why", err)
		}
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shown, d.warned = true, false
	return true
}

// show reports what is left of earlier tasks.
func (d *daemon) show(ctx context.Context) error {
	why, err := os.ReadFile(d.stainFile())
	if err == nil {
		return errors.New(string(why))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if left := d.leftovers(); len(left) > 0 {
		return fmt.Errorf("the server has not heard all of %s", strings.Join(left, ", "))
	}
	last, err := os.ReadFile(d.userFile())
	switch {
	case errors.Is(err, fs.ErrNotExist): // no task was begun since the machine was clean
		return nil
	case err != nil:
		return err
	}
	apart, _ := d.separate()
	if boot, process, _ := strings.Cut(string(last), " "); boot == host.BootID() && process != program.Self() && !apart {
		return errors.New("the agent was started again: what programs left behind before is unknown")
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

// endStrays ends what programs left behind that are over.
func (d *daemon) endStrays() error {
	switch {
	case d.Sole:
		return program.KillDescendants()
	case host.BootID() == "":
		return program.ErrBlind
	}
	return nil // each was found by its mark when it ended
}

// collect takes the exits of what programs leave behind, now and then.
func (d *daemon) collect(ctx context.Context) {
	for d.Sole && wait.For(ctx, collectEvery) == nil {
		program.CollectOrphans()
	}
}

// userFile says which process runs tasks, from the first on until the machine is clean
// again: what they leave behind is that process' alone.
func (d *daemon) userFile() string { return filepath.Join(place.OwnFolder(d.MachineDir), "unclean") }

// stainFile says why the machine can never be shown clean again.
func (d *daemon) stainFile() string {
	return filepath.Join(place.OwnFolder(d.MachineDir), "never-clean")
}

// use notes that a task is about to run.
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

// stain notes that a task writes where the agent removes nothing: a folder of the machine's
// owner, who may want what is in it.
func (d *daemon) stain(g *attempt.Attempt) error {
	if g.User != 0 { // it can write to shared folders only, and they are cleaned
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

// leftovers are the attempts that have a folder here and do not run.
func (d *daemon) leftovers() []string {
	found := map[string]bool{}
	for _, dir := range []string{place.Tasks(d.MachineDir), filepath.Join(d.MachineDir, "tasks")} {
		names, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			found[dir] = true // which no answer of the server removes
		}
		for _, n := range names {
			found[n.Name()] = true
		}
	}
	slots, _ := os.ReadDir(place.Slots(d.MachineDir)) // no task was in one
	known := map[string]bool{}
	for attempt := range found {
		known[place.TopOf(d.MachineDir, attempt)] = true
	}
	for _, s := range slots { // its task's own folder is gone: the removal was cut off
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

// drop removes what is left of attempts that the server has not handed out again: it has
// heard their end, or wants no more of them.
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
		if err == nil { // nobody is left who could put a link where something is removed
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

// cleanUp ends what is left of a task, and removes what it had on the machine. What the
// server has not heard yet stays, for when it is back.
func (d *daemon) cleanUp(g *attempt.Attempt, fenced bool) error {
	if d.keep {
		return nil
	}
	err := errors.Join(g.Unended, g.EndAll())
	if g.User != 0 {
		err = errors.Join(err, residue.EndUser(g.User, d.MachineDir))
	}
	if err == nil && (g.Box.Empty() || fenced) { // nobody is left who could put a link where something is removed
		err = g.Folders.Remove()
	}
	return err
}

package attempt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"scrimp/internal/agent/keeper"
	"scrimp/internal/agent/measure"
	"scrimp/internal/agent/place"
	"scrimp/internal/agent/program"
	"scrimp/internal/agent/programapi"
	"scrimp/internal/agent/progress"
	"scrimp/internal/agent/save"
	"scrimp/internal/agent/stop"
	"scrimp/internal/agent/venv"
	"scrimp/internal/agent/wire"
	"scrimp/internal/agent/workspace"
	"scrimp/internal/wire/api"
)

// outcome is the result of the attempt.
type outcome struct {
	ended  api.Ended
	stop   *stop.Request // the request that ended it; nil: the program ended by itself
	silent bool          // the agent reports nothing
	over   time.Time     // when the program ended; zero: it did not run
}

// failSetup returns the outcome of an attempt that failed before its program ran.
func failSetup(exit int, err error) outcome {
	return outcome{ended: api.Ended{Reason: api.EndSetup, Exit: exit, Error: err.Error()}}
}

// notStarted returns the exit status that a shell reports for a missing (127) or non-executable (126) program.
func notStarted(err error) (status int, known bool) {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return 127, true
	case errors.Is(err, fs.ErrPermission):
		return 126, true
	}
	return 0, false
}

// play prepares the machine, runs the program and keeps what it saved.
func (g *Attempt) play(life context.Context, output *os.File) outcome {
	if g.RanBefore() {
		// The program died with the previous agent. Its folder may hold partly written files.
		return outcome{ended: api.Ended{Reason: api.EndDrained, Exit: 137,
			Error: "the agent was restarted; the program ended with the previous agent"}}
	}
	sig, err := program.ParseSignal(g.Task.Signal)
	if err == nil {
		g.match, err = progress.Compile(g.Task.Progress)
	}
	if err != nil {
		return failSetup(2, err)
	}
	begun, s, err := g.prepareUntilStopped(life, output)
	if begun.api != nil {
		defer func() { _ = begun.api.Close() }() // the program has ended
	}
	if g.keeper != nil {
		defer func() {
			if err := g.keeper.Close(); err != nil {
				g.Log.Warn("close the store", "error", err)
			}
		}()
	}
	switch {
	case s.Silent() || life.Err() != nil:
		return outcome{stop: s, silent: true}
	case s != nil:
		return outcome{ended: api.Ended{Reason: api.EndDrained, Error: "stopped before the program started: " + s.Why},
			stop: s}
	case errors.Is(err, wire.ErrFenced):
		s := g.fencedStop(err)
		return outcome{stop: &s, silent: true}
	case errors.Is(err, workspace.ErrEverywhere):
		return outcome{ended: api.Ended{Reason: api.EndFailed, Exit: 1, Error: err.Error()}}
	case err != nil:
		o := failSetup(1, err)
		if e, ok := errors.AsType[workspace.SetupError](err); ok {
			o.ended.Exit, o.ended.SetupStatus = e.Status, e.Status
		}
		return o
	}
	return g.runProgram(life, begun, output, sig)
}

// ready holds what prepare made for the program.
type ready struct {
	api      *programapi.API
	restored keeper.Restored
	took     time.Duration // duration of the restore, wall time
	env      []string
}

// prepareUntilStopped calls prepare and cancels it once something asks the attempt to end.
func (g *Attempt) prepareUntilStopped(life context.Context, output *os.File) (ready, *stop.Request, error) {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	type result struct {
		ready
		err error
	}
	done := make(chan result, 1)
	go func() {
		r, err := g.prepare(ctx, output)
		done <- result{r, err}
	}()
	var asked *stop.Request
	for {
		select {
		case r := <-done:
			return r.ready, asked, r.err
		case s := <-g.stops:
			g.announceStop(s)
			if asked == nil || s.Silent() {
				asked = &s
			}
			cancel()
		}
	}
}

// announceStop reports a notice to the server and tells the program to stop through its API.
func (g *Attempt) announceStop(s stop.Request) {
	g.Log.Info("stop", "why", s.Why, "source", s.Source)
	g.mu.Lock()
	g.stopping = true
	g.mu.Unlock()
	g.seat.Stopping(s.Why)
	if s.Source != "" {
		g.queue(api.Message{Noticed: &api.Noticed{Source: s.Source, Until: s.Until.UTC()}})
	}
}

// announceRunning is announceStop for a running program: it also waits until the server has received a notice.
func (g *Attempt) announceRunning(life context.Context, s stop.Request) {
	g.announceStop(s)
	if s.Source != "" && !s.AtOnce {
		g.awaitNoticeHeard(life)
	}
}

// prepare fetches the work folder, restores the checkpoint and runs the set-up.
func (g *Attempt) prepare(ctx context.Context, output *os.File) (ready, error) {
	var r ready
	for _, step := range []func() error{
		g.MakeFolders,
		g.RefuseLocalStores,
		func() error { return g.openKeeper(ctx) },
		func() error { return g.Withhold(output) },
		func() error { return g.Fill(ctx, g.keeper, output) },
		func() error { return g.restore(ctx, &r) },
	} {
		if err := step(); err != nil {
			return r, err
		}
	}
	var err error
	if r.api, err = programapi.Serve(g, g.Log); err != nil {
		return r, err
	}
	if err := os.WriteFile(g.Folders.Token, []byte(r.api.Token), 0o600); err != nil {
		return r, errors.Join(err, r.api.Close())
	}
	if err := g.HandOver(); err != nil {
		return r, errors.Join(fmt.Errorf("give the folder to the task's user: %w", err), r.api.Close())
	}
	r.env = place.Environment{
		Base: g.BaseEnv(), Borrowed: g.Borrowed, Task: g.Task, Instance: g.Instance, Folders: g.Folders,
		Accelerators: g.Accelerators, Restored: r.restored.Manifest, URL: r.api.URL, Token: r.api.Token,
		Port: g.masterPort(), Network: g.network(), Inputs: g.Inputs(),
	}.Variables()
	if err := g.SetUp(ctx, r.env, output); err != nil {
		return ready{}, errors.Join(err, r.api.Close())
	}
	r.env = venv.In(g.Venv(), r.env)
	return r, nil
}

// openKeeper opens the store of the attempt.
func (g *Attempt) openKeeper(ctx context.Context) error {
	o := keeper.Options{Task: g.Task, Server: g.Store, Lends: g.Lends, Works: g.Works, Cache: g.Cache(),
		Log: g.Log}
	if g.User != 0 { // then the program cannot replace a copy by another file
		o.Aside = g.Folders.Own
	}
	k, err := g.Open(ctx, o)
	if errors.Is(err, wire.ErrBad) { // such as a bucket that is gone: it is gone for other machines, too
		err = fmt.Errorf("%w: %w", err, workspace.ErrEverywhere)
	}
	if err != nil {
		return fmt.Errorf("open the store of the checkpoints (checkpoint.store): %w", err)
	}
	g.keeper = k
	return nil
}

// restore fills the checkpoint folder with the newest checkpoint and opens the saver.
func (g *Attempt) restore(ctx context.Context, r *ready) error {
	if err := g.MakeCheckpointFolder(); err != nil {
		return err
	}
	begin := g.Now()
	restored, refused, err := g.keeper.Restore(ctx, g.Folders.Checkpoint)
	for _, x := range refused {
		if g.Task.Node == 0 { // rank 0 restores for the gang
			g.queue(api.Message{Refused: &x})
		}
	}
	if err != nil {
		return fmt.Errorf("restore checkpoint: %w", err)
	}
	r.restored, r.took = restored, g.Now().Sub(begin)
	vault := save.Vault(g.keeper)
	if g.Task.Checkpoint.URL == "" || !g.saves() {
		vault = nil
	}
	g.saver = save.New(vault, save.Config{
		Dir: g.Reading(g.Folders.Checkpoint), Quiet: g.Quiet, Whole: g.Task.Session != "",
		Announces: g.match.Announces(), Now: g.Now, Log: g.Log, Saved: g.published,
		Failing: func(err error) { g.unsaved(troubleKeep, err) },
		Copied:  func(err error) { g.unsaved(troubleCapture, err) },
		Fenced:  func(err error) { g.requestStop(g.fencedStop(err)) },
	})
	if err := g.saver.Begin(restored.Manifest != "", restored.Step); err != nil {
		return err
	}
	g.mu.Lock()
	g.last.Step = max(g.last.Step, r.restored.Step)
	for _, c := range []*progress.Counter{&g.printed, &g.written, &g.posted} {
		*c = progress.Counter{Anew: g.Task.Anew, From: r.restored.Step}
	}
	g.mu.Unlock()
	return nil
}

// measure reports the use of the program and the machine until ctx is done.
func (g *Attempt) measure(ctx context.Context, p *program.Program) {
	m := measure.Measurer{Box: g.Box, GPUs: g.GPUs, Part: g.Task.Part, Visible: place.Visible(g.BaseEnv()),
		NeedsGPUs: g.Task.GPUs, Now: g.Now, Every: g.Pace.Usage, Series: &g.series, Pacing: &g.pacing}
	if g.seat != nil {
		m.InUse = g.seat.InUse
	}
	m.Run(ctx, p)
}

// runProgram starts the program and returns after it has ended and its output is kept.
func (g *Attempt) runProgram(life context.Context, r ready, output *os.File, sig syscall.Signal) outcome {
	args := g.Task.Args
	if len(args) == 0 {
		args = []string{"/bin/sh", "-c", g.Task.Command}
	}
	// Output of the set-up and files that already lie in the work folder are not progress.
	w := &watcher{g: g, output: progress.Tail{Path: g.Folders.Log, Bars: true},
		file: progress.Tail{In: g.Reading(""), Path: g.Folders.Progress}}
	err := errors.Join(w.output.Skip(), w.file.Skip(), g.RecordWork(), g.MarkRan())
	if err != nil {
		return failSetup(1, err)
	}
	if err := g.canMeet(); err != nil { // not the program's fault: the next attempt uses another address
		return outcome{ended: api.Ended{Reason: api.EndDrained, Exit: 1, Error: err.Error()}}
	}
	var terminal *os.File
	if g.seat != nil {
		if args, r.env, terminal, err = g.seat.Program(r.env, g.User); err != nil {
			return failSetup(1, err)
		}
	}
	p, err := program.Start(program.Spec{Args: args, Dir: g.Folders.Work, Env: r.env, Output: output, User: g.User,
		Terminal: terminal, Mark: program.NewMark()})
	g.seat.Started()
	if status, known := notStarted(err); known { // every other machine would fail the same way
		return outcome{ended: api.Ended{Reason: api.EndFailed, Exit: status, Error: err.Error()}}
	}
	if err != nil {
		return failSetup(127, err)
	}
	g.mu.Lock()
	g.lastSave = g.Now()
	g.mu.Unlock()
	g.commands.Allow(r.env)
	g.queue(api.Message{Started: &api.Started{Restored: r.restored.Manifest, Step: r.restored.Step, Took: max(0, r.took),
		Data: g.DataRead()}})
	if g.Background {
		if err := program.StepBack(); err != nil {
			g.Log.Warn("lower the agent's priority", "error", err)
		}
	}

	var beside, uploads sync.WaitGroup
	besides, halt := context.WithCancel(life)
	uploading, endUploads := context.WithCancel(life)
	defer uploads.Wait()
	defer endUploads()
	uploads.Go(func() { g.saver.Upload(uploading) })
	beside.Go(func() { w.follow(besides) })
	beside.Go(func() { w.watchFolder(besides) })
	beside.Go(func() { g.measure(besides, p) })

	e, s := stop.Run{Program: p, Signal: sig, Lead: g.Task.SignalLead, Gang: g.Task.Nodes > 1, Upload: g.saver.Expected,
		Requests: g.stops, Announce: g.announceRunning, Now: g.Now, Log: g.Log}.Await(life)
	err = errors.Join(p.Close(), g.EndAll()) // after this nothing changes the files that keep reads
	g.seat.Ended()
	halt()
	beside.Wait()
	if err != nil {
		g.Unended = err
		g.Log.Error("end the program", "error", err)
	}
	if s == nil {
		if s = g.awaitAgentStop(life, p.Exit()); s == nil {
			s = g.askWhyEnded(life, p.Exit())
		}
		e.Heard = s != nil // the same signal, or another rank, ended the program
	}
	if s.Silent() || life.Err() != nil {
		return outcome{stop: s, silent: true}
	}
	w.read(life, true)
	e.Said = w.announced
	return g.keep(life, e, s, p.Exit())
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"scrimp/internal/agent/attempt"
	"scrimp/internal/agent/host"
	"scrimp/internal/agent/meter"
	"scrimp/internal/agent/wire"
	"scrimp/internal/agent/workspace"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
)

// daemon runs tasks until the server orders the machine off or has been unreachable for too long.
type daemon struct {
	Config
	id      *identity
	machine *wire.Machine
	tasks   sync.WaitGroup
	ended   chan struct{} // receives a value after each task's end

	accelerators host.Accelerators
	gpus         meter.GPUs
	warned       bool // logged that the machine is not clean; used by the pulling goroutine only

	mu       sync.Mutex
	running  map[string]string // jobs by attempt
	outcome  error             // error of the task that ended last
	ran      bool              // a task ran
	quit     error             // why the daemon accepts no more tasks: one was fenced, or its cleanup failed
	halt     func()            // stops pulling
	repull   func()            // makes the machine pull again at once
	shown    bool              // the machine was shown to be clean
	dropped  map[string]bool   // attempts whose files were removed, even if the server does not know yet
	tried    string            // build that the agent failed to get; used by the pulling goroutine only
	answered time.Time         // wall time of the server's last answer
	silence  time.Duration     // how long the server may be unreachable
}

// register sends the machine's key to the server, once.
func (d *daemon) register(soft, life context.Context) error {
	if d.id.Registered {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(soft, d.RegisterFor, fmt.Errorf("no answer within %v", d.RegisterFor))
	defer cancel()
	defer context.AfterFunc(life, cancel)()
	isolated, why := d.separate()
	if !isolated {
		d.Log.Info("programs run as the agent's user and can read its files", "why", why)
	}
	r := api.Registration{Instance: d.Instance, Key: httpsig.Encode(d.id.public()), Version: d.Version,
		Boot: d.Now().UTC(), CPUs: runtime.NumCPU(), Memory: host.Memory(), Root: os.Geteuid() == 0,
		Isolated: isolated, Address: d.Address}
	if r.Address == "" {
		r.Address = host.Address(ctx, d.Server, d.Metadata, d.Log)
	}
	err := wire.Retry(ctx, func(ctx context.Context) error {
		_, err := d.machine.Register(ctx, r)
		if err != nil {
			d.Log.Warn("register the machine", "error", err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("agent: register %s: %w", d.Instance, err)
	}
	return d.id.registered(d.MachineDir, isolated)
}

// serve pulls tasks and runs them, and returns when the machine can be switched off.
func (d *daemon) serve(soft, life context.Context) error {
	pulling, halt := context.WithCancel(life)
	defer halt()
	defer context.AfterFunc(soft, halt)()
	d.halt = halt
	err := d.pullAll(pulling, soft, life)
	d.tasks.Wait()
	if dirty := d.endStrays(); dirty != nil && d.Sole {
		d.Log.Warn("end what programs left behind", "error", dirty)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case context.Cause(life) != nil:
		return context.Cause(life)
	case d.quit != nil:
		return d.quit
	case d.ran: // the result of its task says more than an unwanted machine
		return d.outcome
	}
	return err
}

// pullAll pulls tasks and starts them until the server orders the machine off.
func (d *daemon) pullAll(ctx, soft, life context.Context) error {
	for pause := 100 * time.Millisecond; ctx.Err() == nil; {
		p, err := d.pull(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errTaskEnded):
			continue
		case errors.Is(err, wire.ErrFenced), errors.Is(err, wire.ErrBad):
			return fmt.Errorf("agent: pull tasks: %w", err)
		case err != nil:
			d.Log.Warn("pull tasks", "error", err)
			if d.serverLost() {
				return fmt.Errorf("agent: the server was unreachable for too long: %w", err)
			}
			d.rest(ctx, pause)
			pause = min(2*pause, attempt.Slowest)
			continue
		}
		pause = 100 * time.Millisecond
		d.mu.Lock()
		d.answered = wire.Wall(d.Now())
		quit := d.quit
		d.mu.Unlock()
		if p.Off || quit != nil {
			return nil
		}
		for _, a := range p.Tasks {
			if d.ending(a) { // the server assigns it again
				d.rest(ctx, pause)
				continue
			}
			if err := d.begin(soft, life, a); err != nil {
				return err
			}
		}
		if len(p.Tasks) == 0 && d.outdated(p.Build) {
			d.Log.Error("continue with this build", "error", d.update(ctx, p.Build))
		}
		if p.Wire > api.Wire { // a newer server assigns no tasks to this agent
			d.rest(ctx, time.Second)
		}
	}
	return nil
}

// rest waits for pause, or until a task ends.
func (d *daemon) rest(ctx context.Context, pause time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = wait.For(ctx, pause) // only the end matters
	}()
	select {
	case <-done:
	case <-d.ended:
	}
	cancel()
	<-done
}

// runs returns the attempts that run on this machine.
func (d *daemon) runs() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for a := range d.running {
		list = append(list, a)
	}
	slices.Sort(list)
	return list
}

// serverLost reports whether the server has been unreachable for too long while no task runs. A running
// task decides for itself.
func (d *daemon) serverLost() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.running) == 0 && wire.Wall(d.Now()).Sub(d.answered) > d.silence
}

// ending reports whether an earlier attempt of the task's job runs on this machine. The rest of a
// gang ends before the next one starts.
func (d *daemon) ending(a api.Assignment) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for attempt, job := range d.running {
		if job == a.Job && attempt != a.Attempt {
			return true
		}
	}
	return false
}

// begin starts a task beside the others.
func (d *daemon) begin(soft, life context.Context, a api.Assignment) error {
	d.mu.Lock()
	_, again := d.running[a.Attempt]
	dropped := d.dropped[a.Attempt]
	d.mu.Unlock()
	if again {
		return nil
	}
	server, err := wire.Dial(d.Server, func() string { return a.AttemptToken })
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	server.Trust(d.Roots)
	server.Node = a.Node
	machine := workspace.Machine{Instance: d.Instance, MachineDir: d.MachineDir, Environ: d.Environ, Borrowed: d.Borrowed,
		TaskUser: d.TaskUser, Sole: d.Sole, Now: d.Now, Log: d.Log, Setups: d.setups, Inputs: d.inputs}
	g, err := attempt.New(attempt.Config{Machine: machine, Metadata: d.Metadata, Background: d.Background,
		Notice: d.Notice, Quiet: d.Quiet, Open: d.open, Store: server.Store(), Lends: server.Credentials,
		Works: server.WorkBlob, Searches: server.Search, Pace: d.pace}, a, server)
	if err != nil {
		server.Close()
		return fmt.Errorf("agent: start %s: %w", a.Attempt, err)
	}
	g.Contact, g.Only, g.GPUs = d.contact, d.runsOne, &d.gpus
	err = d.use(g)
	g.Accelerators = d.accelerators.First.Devices
	if dropped { // it has run already
		err = errors.Join(err, g.MarkRan())
	}
	if err != nil {
		server.Close()
		return fmt.Errorf("agent: start %s: %w", a.Attempt, errors.Join(err, g.Box.Close()))
	}
	d.mu.Lock()
	d.running[a.Attempt], d.ran = a.Job, true
	if a.Silence > 0 {
		d.silence = a.Silence
	}
	d.mu.Unlock()
	d.tasks.Go(func() {
		defer server.Close()
		mine, end := context.WithCancelCause(life)
		err := g.Run(soft, mine, end)
		if err != nil {
			d.Log.Warn("a task ended", "attempt", a.Attempt, "error", err)
		}
		d.finish(g, err)
	})
	return nil
}

// runsOne reports whether at most one task runs.
func (d *daemon) runsOne() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.running) <= 1
}

// contact records that the server answered a task's report.
func (d *daemon) contact(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at = wire.Wall(at); at.After(d.answered) {
		d.answered = at
	}
}

// finish cleans up after a task. Reports that the server has not received stay on disk until it is
// reachable. A fenced task is the last one, because the server and the agent disagree about the
// purpose of the machine. The machine of a dissolved gang continues, because the next gang may use
// it.
func (d *daemon) finish(g *attempt.Attempt, err error) {
	fenced := errors.Is(err, wire.ErrFenced)
	quit := err
	if !fenced || errors.Is(err, attempt.ErrDissolved) {
		quit = nil
	}
	if dirty := d.cleanUp(g, fenced); dirty != nil {
		quit = errors.Join(quit, fmt.Errorf("agent: clean up after %s: %w", g.Task.Attempt, dirty))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, g.Task.Attempt)
	d.outcome = err
	if quit != nil {
		d.quit = errors.Join(d.quit, quit)
		d.halt()
	}
	d.repull()
	select {
	case d.ended <- struct{}{}:
	default:
	}
}
